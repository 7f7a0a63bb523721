package import Logging
package import SluiceCore
package import SluiceIdentity
package import SluicePorts

/// Delivers events of users: to their topic (`Topics.userEvents`), and to the functions of authentication triggers.
///
/// Each event is delivered at least once, and those of a user in order. All gateways work at it; a lease keeps an event from the others. A
/// call that fails is repeated (`TriggerRetries`), while later events of the user wait. Then it is given up and stored. Without topic and
/// triggers, events are removed unread.
package struct UserEventRelay: Sendable {
    /// The topic of events.
    package struct Topic: Sendable {
        var log: any MessageLog
        var name: String
        /// The form of the records.
        var content: RecordContent

        package init(log: any MessageLog, name: String, content: RecordContent = .json) {
            self.log = log
            self.name = name
            self.content = content
        }
    }

    /// The maximum number of events taken at once for triggers and for the topic, and removed at once. Calls of triggers run at the same
    /// time.
    private static let width = (triggers: 16, topic: 256, discarded: 10_000)
    /// The time for a batch, in seconds. It is more than the longest call of a function and the longest append.
    private static let leaseSeconds = 600
    /// The wait of a batch that the topic did not take, in seconds.
    private static let topicSeconds = 5
    /// The wait for the next events, in nanoseconds.
    private static let pause: UInt64 = 1_000_000_000
    /// The wait after a batch that took all there were, in nanoseconds. So many logins a second share batches.
    private static let gathering: UInt64 = 100_000_000
    /// The wait for events that another gateway held for a destination that this app does not have, in nanoseconds.
    private static let sweep: UInt64 = 60_000_000_000

    private let queue: any UserEventQueue
    private let topic: Topic?
    private let triggers: [AuthenticationTrigger]
    private let functions: any AppFunctions
    private let metrics: Metrics
    private let environment: any Environment
    private let logger: Logger

    /// - Parameter topic: The topic; nil without Kafka.
    package init(
        queue: any UserEventQueue, topic: Topic?, triggers: [AuthenticationTrigger], functions: any AppFunctions, metrics: Metrics,
        environment: any Environment, logger: Logger
    ) {
        self.queue = queue
        self.topic = topic
        self.triggers = triggers
        self.functions = functions
        self.metrics = metrics
        self.environment = environment
        self.logger = logger
    }

    private var destinations: Set<UserEventDestination> {
        var destinations: Set<UserEventDestination> = triggers.isEmpty ? [] : [.triggers]
        if topic != nil { destinations.insert(.topic) }
        return destinations
    }

    /// Runs until the task is cancelled. The topic and the triggers receive events independently of each other.
    package func run() async throws {
        let destinations = destinations
        try await withThrowingTaskGroup(of: Void.self) { group in
            if let topic {
                group.addTask {
                    try await repeating(most: Self.width.topic, measuring: !destinations.contains(.triggers)) {
                        try await publish(to: topic)
                    }
                }
            }
            if destinations.contains(.triggers) {
                group.addTask { try await repeating(most: Self.width.triggers, measuring: true) { try await triggerBatch() } }
            }
            group.addTask {
                try await repeating(
                    most: Self.width.discarded, measuring: destinations.isEmpty, pause: destinations.isEmpty ? Self.pause : Self.sweep
                ) { try await discard(of: destinations) }
            }
            defer { group.cancelAll() }
            // None ends by itself, so the first result is an error or the cancellation.
            try await group.next()
        }
    }

    /// - Parameters:
    ///   - most: The largest batch.
    ///   - measuring: `true` to read the lag between batches, also while none is the last one.
    ///   - batch: Returns the number of events that it has taken.
    private func repeating(
        most: Int, measuring: Bool, pause: UInt64 = Self.pause, _ batch: () async throws -> Int
    ) async throws {
        var isFailing = false
        var measured: UInt64?
        while !Task.isCancelled {
            var count = 0
            do {
                if measuring { try await measure(&measured) }
                count = try await batch()
                isFailing = false
            } catch is CancellationError {
                return
            } catch {
                // One line for each outage.
                if !isFailing { logger.warning("Events of users wait. The gateway tries again.", metadata: ["error": "\(error)"]) }
                isFailing = true
            }
            if count < most { try await environment.sleep(nanoseconds: count == 0 ? pause : Self.gathering) }
        }
    }

    private func measure(_ last: inout UInt64?) async throws {
        let now = environment.monotonicNanoseconds()
        if let last, now >= last, now - last < Self.pause { return }
        metrics.number(.userEventLag).set(try await queue.lag())
        last = now
    }

    private func finish(_ events: [UserEvent], at destination: UserEventDestination) async throws {
        let gone = try await queue.finish(events.map(\.id), at: destination, of: destinations)
        for event in events where gone.contains(event.id) { metrics.number(.userEvents, label: event.kind.rawValue).add() }
    }

    private func discard(of destinations: Set<UserEventDestination>) async throws -> Int {
        let removed = try await queue.discard(Self.width.discarded, of: destinations)
        for (kind, count) in removed { metrics.number(.userEvents, label: kind.rawValue).add(count) }
        return removed.values.reduce(0, +)
    }

    // MARK: Topic

    private func publish(to topic: Topic) async throws -> Int {
        let events = try await queue.takeUnpublished(Self.width.topic, leaseSeconds: Self.leaseSeconds)
        guard !events.isEmpty else { return 0 }
        try await append(events, to: topic)
        try await finish(events, at: .topic)
        return events.count
    }

    private func append(_ events: [UserEvent], to topic: Topic) async throws {
        var records = LogBatch(topics: [topic.name], contentType: topic.content)
        for event in events {
            records.append(topic: 0, partition: 0, key: Array(event.account.id.utf8), value: try event.record(topic.content))
        }
        do {
            _ = try await topic.log.append(records)
        } catch {
            // Other gateways may reach the brokers.
            try await queue.keep(unpublished: events.map(\.id), seconds: Self.topicSeconds)
            throw error
        }
    }

    // MARK: Triggers

    private func triggerBatch() async throws -> Int {
        let events = try await queue.take(Self.width.triggers, leaseSeconds: Self.leaseSeconds)
        let (waiting, done) = (events.filter { next(of: $0) != nil }, events.filter { next(of: $0) == nil })
        if !done.isEmpty { try await finish(done, at: .triggers) }
        await withTaskGroup(of: Void.self) { group in
            for event in waiting { group.addTask { await trigger(event) } }
        }
        return events.count
    }

    /// The next trigger of an event; nil if all have run.
    private func next(of event: UserEvent) -> AuthenticationTrigger? {
        triggers.first { $0.matches(event) && !event.done.contains($0.name) }
    }

    /// Calls the triggers of an event, one after another, up to the first failure.
    private func trigger(_ given: UserEvent) async {
        var event = given
        do {
            while let trigger = next(of: event) {
                guard try await call(trigger, &event) else { return }
                event.done.append(trigger.name)
                event.attempts = 0
                if next(of: event) != nil { try await queue.postpone(event, seconds: Self.leaseSeconds) }
            }
            try await finish([event], at: .triggers)
        } catch {
            // The lease expires, and the event is taken again.
            logger.warning(
                "The progress of a trigger could not be stored. Its function may be called again.",
                metadata: ["event": "\(event.id)", "error": "\(error)"])
        }
    }

    /// - Returns: `false` if the call has to be repeated. Its next attempt is stored then.
    private func call(_ trigger: AuthenticationTrigger, _ event: inout UserEvent) async throws -> Bool {
        metrics.number(.triggerCalls, label: trigger.name).add()
        do throws(SluiceError) {
            _ = try await functions.call(trigger.call(for: event, user: event.account.context))
            return true
        } catch {
            metrics.number(.triggerFailures, label: trigger.name).add()
            event.attempts += 1
            if let wait = TriggerRetries.wait(failed: event.attempts) {
                try await queue.postpone(event, seconds: wait)
                return false
            }
            logger.error(
                "A trigger is given up. The table sluice.trigger_failure has its event.",
                metadata: [
                    "trigger": "\(trigger.name)", "event": "\(event.id)", "attempts": "\(event.attempts)",
                    "error": .string(error.description),
                ])
            metrics.number(.triggersBuried, label: trigger.name).add()
            try await queue.bury(event, trigger: trigger.name, reason: error.operatorText)
            return true
        }
    }
}
