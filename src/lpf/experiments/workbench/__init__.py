"""One lesson at work: models trained, methods fitted, questions answered."""
