# make; ./plan
@VARIABLES@
OBJECTS = \
  program.o@OBJECTS@

plan: $(OBJECTS)
	$(LINK) $(LDFLAGS) -o $@ $(OBJECTS) $(LDLIBS)

@RULES@$(OBJECTS): $(wildcard *.h *.cuh)

clean:
	rm -f plan $(OBJECTS)

.PHONY: clean
