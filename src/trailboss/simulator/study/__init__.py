"""What runs a study: points and replications, workers, results with their provenance, figures and pages."""
