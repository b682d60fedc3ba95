"""What is computed: parameters, named inputs, float64 references and error budgets of each op."""
