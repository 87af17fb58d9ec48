"""What a run is in a folder: parameters by name, settings, counters."""
