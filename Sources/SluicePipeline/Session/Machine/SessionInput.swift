import SluiceCore

/// The kinds of a client's messages.
enum ClientMessageKind: String, CaseIterable, Sendable {
    case hello, subscribe, upload, ingest, mark, refreshToken, reportError
}

/// The events that the session machine handles.
enum SessionInput: Sendable {
    /// A message of the client arrived.
    case received(ClientMessageKind)
    /// The Hello is accepted; the replica's changesets up to this number took effect in earlier sessions.
    case opened(changeset: UInt64)
    /// A Subscribe of this version is about to be judged.
    case requested(version: UInt64)
    /// The view of a new subscription set was built.
    case accepted(SubscriptionSet, View)
    /// A changeset was committed, or sent again.
    case committed(Acknowledgement)
    case ingest(WaitingBatch)
    case barrier(UInt64)
    /// The rules or the user's data may have changed.
    case rulesChanged
    /// The live view is stopped after a review of the rules, and this one must follow it.
    case replace(View)
    /// No plugin answered a review.
    case rulesFailed(SluiceError)
    /// The rules allow no view, by a review.
    case rulesRefused(any Error)
    /// The rules answered a question that was asked while they were unavailable; nil without subscriptions.
    case answered(question: UInt64, View?)
    /// The rules allow no view, by the answer to a question that was asked while they were unavailable.
    case answerRefused(question: UInt64, any Error)
    /// The task `number` asks no more: the connection is gone.
    case askingEnded(number: UInt64)
    /// The task on the view must end, and none may follow.
    case stop
    /// The bootstrap of task `number` is about to end: the client may know the view from here on.
    case ending(number: UInt64, View)
    /// The bootstrap of task `number` is complete.
    case live(number: UInt64, View)
    /// The bootstrap of task `number` has failed. `workEnded` follows.
    case bootstrapFailed(number: UInt64)
    /// The task `number` on the view has ended. `isStale` is `true` if a change may have affected the view's members.
    case workEnded(number: UInt64, WorkOutcome, isStale: Bool)
    /// A change may have affected the view's members.
    case membersChanged(isStale: Bool)
    /// The session must end with an error.
    case failed(SluiceError)
    /// The connection is closed.
    case disconnected
}

/// The result of a task on the view.
enum WorkOutcome: Sendable {
    /// The view is live, or the task was cancelled before it had a result.
    case done
    /// The search of this number found the members, and the view with them is live.
    case searched(UInt64)
    case bootstrapFailed(SluiceError)
    case searchFailed(any Error)
}

/// The effects that `Session` performs, in order. All of them begin at once: none waits for an effect before it.
enum SessionEffect: Sendable {
    /// Starts flushes until `UploadState.nextFlush` is empty.
    case flush
    /// Starts the taker of `IngestQueue`.
    case takeBatches
    /// Starts the answering of `Barriers`.
    case answerBarriers
    /// Starts the task `number`: it makes the view live. Answered by `workEnded`.
    case bootstrap(UInt64, View)
    /// Starts the task `number`: it finds the members of the live view. Answered by `workEnded`.
    case search(UInt64)
    /// Cancels the task on the view. Answered by its `workEnded`.
    case cancelWork
    /// Starts the task `number`: it stops the live view and its task, then asks the rules until an answer arrives.
    case askRules(UInt64, SluiceError)
    /// Sends the error and closes the connection.
    case end(SluiceError)
}
