import Dispatch

/// The executor that a Realm is confined to and that runs its notifications.
enum Scheduler: Sendable {
    case main
    /// A serial queue. The number is equal for all Realms of the queue; see `Scheduler.of`.
    case queue(DispatchQueue, number: UInt64)
    case actor(any Actor)
    /// A thread without a queue. The Realm advances only through `refresh()`.
    case thread(ThreadNumber)
    /// A task without an actor. It may resume on another thread after each `await`, so nothing is checked.
    case task(Int)
    /// No executor: a frozen Realm.
    case none

    /// `true` if notifications can be delivered.
    var canDeliver: Bool {
        switch self {
        case .main, .queue, .actor: true
        case .thread, .task, .none: false
        }
    }

    /// The actor, if it is one other than the main actor.
    var isolation: (any Actor)? { if case .actor(let actor) = self { actor } else { nil } }

    /// Runs the body on the executor later. Does nothing on a scheduler that cannot deliver.
    func enqueue(_ body: @escaping @Sendable () -> Void) {
        switch self {
        case .main: DispatchQueue.main.async(execute: body)
        case .queue(let queue, _): queue.async(execute: body)
        case .actor(let actor):
            // Unstructured because: no caller waits for a notification; it is short and ends by itself.
            _Concurrency.Task { await Scheduler.run(body, on: actor) }
        case .thread, .task, .none: break
        }
    }

    private static func run(_ body: @Sendable () -> Void, on actor: isolated any Actor) { body() }
}

/// Carries a value to the scheduler that it is confined to.
// Sendable because: the creator sends it only to the scheduler that its content belongs to.
struct Confined<Content>: @unchecked Sendable {
    let content: Content
    init(_ content: Content) { self.content = content }
}

/// A `Confined` that does not retain its content.
final class WeakConfined<Content: AnyObject>: @unchecked Sendable {  // Sendable because: the same condition holds as for `Confined`.
    weak var content: Content?
    init(_ content: Content) { self.content = content }
}
