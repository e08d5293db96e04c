//! Puts messages from the dead-letter queue back into their queues. SQS moves a message there after too many failed
//! receives, for example after a failure that lasted for days. A message that a function refused is left there.

use std::sync::Arc;

use crate::AppError;
use crate::ports::{Buried, DeadLetters};

/// The maximum number of batches of messages that one run looks at.
const MAX_BATCHES: u32 = 5;
/// The maximum number of times that one message is put back. Each time, its queue delivers it up to 1,000 times before
/// SQS moves it again.
const MAX_PUT_BACK: u32 = 100;

/// The use case that puts messages back, with its port.
#[derive(Clone)]
pub struct PutBackMessages {
    pub letters: Arc<dyn DeadLetters>,
}

impl PutBackMessages {
    /// Puts back messages that may be handled now. Returns the number of these messages.
    ///
    /// # Errors
    /// The queue's errors.
    pub async fn put_back(&self) -> Result<u32, AppError> {
        let mut count = 0;
        for _ in 0..MAX_BATCHES {
            let messages = self.letters.look().await?;
            if messages.is_empty() {
                break;
            }
            for message in messages.iter().filter(|message| is_worth_it(message)) {
                if self.letters.put_back(message).await? {
                    count += 1;
                }
            }
        }
        Ok(count)
    }
}

/// Returns whether another try is useful: no function refused the message, and it was not put back too often.
const fn is_worth_it(message: &Buried) -> bool {
    message.reason.is_none() && message.put_back < MAX_PUT_BACK
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use freehold_protocol::Timestamp;

    use super::*;
    use crate::ports::PortError;

    /// A dead-letter queue that shows each message once.
    struct Letters {
        messages: Mutex<Vec<Buried>>,
        returned: Mutex<Vec<String>>,
        looks: Mutex<u32>,
    }

    #[async_trait]
    impl DeadLetters for Letters {
        async fn look(&self) -> Result<Vec<Buried>, PortError> {
            *self.looks.lock().unwrap() += 1;
            let mut messages = self.messages.lock().unwrap();
            let end = messages.len().min(10);
            Ok(messages.drain(..end).collect())
        }

        async fn put_back(&self, message: &Buried) -> Result<bool, PortError> {
            self.returned.lock().unwrap().push(message.body.clone());
            Ok(true)
        }

        async fn remove(&self, _: &Buried) -> Result<(), PortError> {
            Ok(())
        }
    }

    fn buried(body: &str) -> Buried {
        Buried {
            receipt: body.to_owned(),
            body: body.to_owned(),
            source: Some("fh-acme--reports".into()),
            sent_at: Timestamp::default(),
            put_back: 0,
            reason: None,
        }
    }

    async fn run(messages: Vec<Buried>) -> (u32, Vec<String>, u32) {
        let letters = Letters { messages: Mutex::new(messages), returned: Mutex::default(), looks: Mutex::default() };
        let letters = Arc::new(letters);
        let count = PutBackMessages { letters: letters.clone() }.put_back().await.unwrap();
        let returned = letters.returned.lock().unwrap().clone();
        let looks = *letters.looks.lock().unwrap();
        (count, returned, looks)
    }

    #[tokio::test]
    async fn what_sqs_moved_returns_and_what_a_function_refused_stays() {
        let refused = Buried { reason: Some("bad signature".into()), ..buried("refused") };
        let worn_out = Buried { put_back: MAX_PUT_BACK, ..buried("worn out") };

        let (count, returned, _) = run(vec![refused, buried("report"), worn_out]).await;

        assert_eq!((count, returned), (1, vec!["report".to_owned()]));
    }

    #[tokio::test]
    async fn one_run_is_bounded() {
        let (count, _, looks) = run((0..80).map(|at| buried(&at.to_string())).collect()).await;

        assert_eq!((count, looks), (50, MAX_BATCHES));
    }
}
