fuseplan bench 5 --batchs 1
