//! The iteration budget of a turn: one counter for "calls made" and "calls left" (spec 10 §4).

/// Counts iterations; a refund gives one back, to the call counter too, since they are one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IterationBudget {
    used: u32,
    /// `None` = unlimited.
    max: Option<u32>,
}

impl IterationBudget {
    pub(crate) fn new(max: Option<u32>) -> Self {
        Self { used: 0, max }
    }

    /// Takes one iteration; `false` when none is left.
    pub(crate) fn consume(&mut self) -> bool {
        let left = self.max.is_none_or(|max| self.used < max);
        self.used += u32::from(left);
        left
    }

    /// Gives the last iteration back.
    pub(crate) fn refund(&mut self) {
        self.used = self.used.saturating_sub(1);
    }

    pub(crate) fn used(&self) -> u32 {
        self.used
    }

    pub(crate) fn max(&self) -> Option<u32> {
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spent_budget_lets_nothing_start() {
        let mut budget = IterationBudget::new(Some(2));
        assert!(budget.consume() && budget.consume() && !budget.consume());
        assert_eq!(budget.used(), 2);
    }

    #[test]
    fn a_refund_gives_back_one_and_never_goes_below_zero() {
        let mut budget = IterationBudget::new(Some(1));
        budget.refund();
        assert!(budget.consume() && !budget.consume());
        budget.refund();
        assert!(budget.consume());
    }

    #[test]
    fn an_unlimited_budget_never_ends() {
        let mut budget = IterationBudget::new(None);
        for _ in 0..10_000 {
            assert!(budget.consume());
        }
    }
}
