//! One call after the other: each result is durable before the next call begins.

use std::ops::Range;

use hermes_state::StateError;

use crate::turn::Turn;
use crate::turn::tool_round::Round;
use crate::turn::tool_round::record::refused;

pub(super) async fn run(
    round: &mut Round<'_>,
    turn: &mut Turn,
    calls: Range<usize>,
) -> Result<(), StateError> {
    let stop = round.call_cx.stop.clone();
    for place in calls {
        let Some(planned) = round.calls.get(place) else { continue };
        round.announce(&planned.call);
        let result = if let Some(refusal) = &planned.refusal {
            refused(&planned.call, refusal)
        } else {
            // After an interrupt the dispatcher begins nothing any more, and says so.
            turn.tool_calls += u32::from(stop.reason().is_none());
            let result = round.dispatcher().call(round.for_call(&stop), &planned.call).await;
            turn.tools_s += result.duration_s;
            result
        };
        round.record(turn, place, result).await?;
    }
    Ok(())
}
