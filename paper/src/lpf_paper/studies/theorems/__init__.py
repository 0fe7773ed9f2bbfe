"""The theorems and propositions of the paper, each computed: does its bound hold?"""
