"""How good answers are: measures, their spread over runs, methods against each other."""
