//! The size of one message: 16 MiB in both directions, and an error that names the limit
//! (contract §1).

use hermes_proto::MAX_MESSAGE_BYTES;
use tonic::{Code, Response, Status};

/// Bytes of one frame of rows. Well below the limit: what else a frame carries fits beside it.
pub(crate) const ROWS_BYTES: usize = 4 * 1024 * 1024;

/// Bytes of one row's text. A longer one (only an imported database has such) is cut, visibly.
pub(crate) const ROW_TEXT_BYTES: usize = 8 * 1024 * 1024;

/// Sends an answer, or says that it is too large and what to ask instead.
pub(crate) fn reply<M: prost::Message>(answer: M, instead: &str) -> Result<Response<M>, Status> {
    let size = answer.encoded_len();
    if size > MAX_MESSAGE_BYTES {
        return Err(Status::resource_exhausted(format!(
            "the answer has {size} bytes, more than the limit of one message, {}; {instead}",
            limit_text()
        )));
    }
    Ok(Response::new(answer))
}

/// Rewords the transport's refusal of a request that is too large.
pub(crate) fn explain(status: &Status) -> Option<Status> {
    let too_large = status.code() == Code::OutOfRange
        && status.message().starts_with("Error, decoded message length too large");
    too_large.then(|| {
        Status::resource_exhausted(format!(
            "the request is larger than the limit of one message, {}; put the text into a file and name the \
             file instead",
            limit_text()
        ))
    })
}

fn limit_text() -> String {
    format!("{} MiB ({MAX_MESSAGE_BYTES} bytes)", MAX_MESSAGE_BYTES / (1024 * 1024))
}

#[cfg(test)]
mod tests {
    use hermes_proto::v1;

    use super::*;

    #[test]
    fn an_answer_above_the_limit_is_an_error_that_names_it() {
        let answer = v1::LogLine { line: "x".repeat(MAX_MESSAGE_BYTES) };
        let status = reply(answer, "ask for fewer lines").unwrap_err();
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert!(status.message().contains("16 MiB (16777216 bytes)"), "{status}");
        assert!(status.message().ends_with("ask for fewer lines"), "{status}");
    }

    #[test]
    fn only_the_transports_own_refusal_is_reworded() {
        assert!(explain(&Status::out_of_range("row 7")).is_none());
        let refusal = Status::out_of_range(
            "Error, decoded message length too large: found 17000000 bytes, the limit is: 16777216 bytes",
        );
        assert!(explain(&refusal).unwrap().message().contains("16 MiB"));
    }
}
