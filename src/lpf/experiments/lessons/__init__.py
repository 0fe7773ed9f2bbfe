"""What is learned from and who is asked: data sets, exams, spoilt evidence, features."""
