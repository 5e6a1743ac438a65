//! Tests of V4A patches through the dispatcher.
