import Dispatch

/// Where a Realm lives: the one place from which it may be used, and to which its notifications come.
enum Scheduler: Sendable {
    case main
    /// The number is the same for all Realms of the queue; see `Scheduler.of`.
    case queue(DispatchQueue, number: UInt64)
    case actor(any Actor)
    /// A thread without a queue: the Realm moves on by `refresh()` only.
    case thread(ThreadNumber)
    /// A task without actor. What comes after an `await` may be on another thread, so there is nothing to check.
    case task(Int)
    /// Nowhere: a frozen Realm.
    case none

    var canDeliver: Bool {
        switch self {
        case .main, .queue, .actor: true
        case .thread, .task, .none: false
        }
    }

    func enqueue(_ body: @escaping @Sendable () -> Void) {
        switch self {
        case .main: DispatchQueue.main.async(execute: body)
        case .queue(let queue, _): queue.async(execute: body)
        case .actor(let actor):
            // Unstructured because: a notification has no caller to wait for it; it is short and ends by itself.
            _Concurrency.Task { await Scheduler.run(body, on: actor) }
        case .thread, .task, .none: break
        }
    }

    private static func run(_ body: @Sendable () -> Void, on actor: isolated any Actor) { body() }
}

/// Carries something confined to the place that it is confined to.
// Sendable because: whoever makes one sends it only to the queue or actor that its content belongs to.
struct Confined<Content>: @unchecked Sendable {
    let content: Content
    init(_ content: Content) { self.content = content }
}

/// The same without keeping it alive.
// Sendable because: as with Confined.
final class WeakConfined<Content: AnyObject>: @unchecked Sendable {
    weak var content: Content?
    init(_ content: Content) { self.content = content }
}
