"""From one domain to another, and from few labels."""
