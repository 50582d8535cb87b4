# fuseplan with CUDA's compiler: `docker build -t fuseplan .`, `docker run --rm -it --gpus all fuseplan doctor`.
# Results and compiled kernels are kept where /root is a volume: `-v fuseplan:/root`.
FROM nvidia/cuda:12.8.1-devel-ubuntu24.04
COPY . /usr/src/fuseplan
RUN cd /usr/src/fuseplan && ./run install PREFIX=/usr/local && rm -rf build /var/lib/apt/lists/*
ENTRYPOINT ["fuseplan"]
CMD ["doctor"]
