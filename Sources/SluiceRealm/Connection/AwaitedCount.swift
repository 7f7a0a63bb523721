import SluiceCore
import SluicePorts

/// A count that only grows, and the event of those who wait for a value.
///
/// Each message to a client raises counts that nobody waits for, so the event is made by the first wait.
struct AwaitedCount {
    private(set) var count: UInt64 = 0
    private var event: AsyncEvent?

    /// Raises the count to at least `value`.
    mutating func reach(_ value: UInt64) {
        count = max(count, value)
        event?.reach(value)
    }

    /// Returns an event that has the same count.
    mutating func event(_ environment: any Environment) -> AsyncEvent {
        if let event { return event }
        let event = AsyncEvent(environment: environment)
        event.reach(count)
        self.event = event
        return event
    }
}
