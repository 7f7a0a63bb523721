import Dispatch
import Foundation
import Synchronization

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

/// The identity of a running thread.
struct ThreadNumber: Hashable, Sendable {
    let number: UInt

    static var current: ThreadNumber { ThreadNumber(number: withUnsafeBytes(of: pthread_self()) { $0.loadUnaligned(as: UInt.self) }) }
}

extension Scheduler {
    /// The identity of a scheduler, equal for all Realms on it.
    enum Identity: Hashable, Sendable {
        case main
        case queue(UInt64)
        case actor(ObjectIdentifier)
        case thread(ThreadNumber)
        case task(Int)
    }

    /// The identity of the scheduler; nil if the Realm is not shared with other handles.
    var identity: Identity? {
        switch self {
        case .main: .main
        case .queue(_, let number): .queue(number)
        case .actor(let actor): .actor(ObjectIdentifier(actor))
        case .thread(let number): .thread(number)
        case .task(let number): .task(number)
        case .none: nil
        }
    }

    /// The key under which queues store their number. On Linux one queue has several Swift objects, so object identity fails.
    private static let numberKey = DispatchSpecificKey<UInt64>()
    private static let mainNumber: UInt64 = 0
    private static let lastNumber = Mutex(mainNumber)
    private static let isMainNumbered: Bool = {
        DispatchQueue.main.setSpecific(key: numberKey, value: mainNumber)
        return true
    }()

    /// The scheduler of a queue. The main queue maps to `main`.
    static func of(_ queue: DispatchQueue) -> Scheduler {
        _ = isMainNumbered
        // Numbered under the lock: two threads may use a new queue at the same time.
        let number = lastNumber.withLock { last in
            if let number = queue.getSpecific(key: numberKey) { return number }
            last += 1
            queue.setSpecific(key: numberKey, value: last)
            return last
        }
        return number == mainNumber ? .main : .queue(queue, number: number)
    }

    /// The scheduler of an actor; without one, that of the current thread or task.
    static func of(_ actor: (any Actor)?) -> Scheduler {
        guard let actor else { return .current }
        return actor === MainActor.shared ? .main : .actor(actor)
    }

    /// The number of the current queue; nil if no Realm has used the queue, or outside of queues.
    private static var currentQueue: UInt64? {
        _ = isMainNumbered
        return DispatchQueue.getSpecific(key: numberKey)
    }

    /// The main thread's number after its first use here; 0 before.
    private static let mainThread = Atomic<UInt>(0)

    /// `true` on the main thread or the main queue. In programs with an asynchronous `main`, Linux runs that queue on another thread.
    ///
    /// Foundation is asked last: its check is a system call, and every use of a Realm runs this one.
    private static var isOnMain: Bool {
        let known = mainThread.load(ordering: .relaxed)
        if known == ThreadNumber.current.number || currentQueue == mainNumber { return true }
        guard known == 0, Thread.isMainThread else { return false }
        mainThread.store(ThreadNumber.current.number, ordering: .relaxed)
        return true
    }

    private static var currentTask: Int? { withUnsafeCurrentTask { $0?.hashValue } }

    /// The scheduler of a synchronous caller. On an actor other than the main one it is the current task.
    static var current: Scheduler {
        if isOnMain { return .main }
        return currentTask.map { .task($0) } ?? .thread(.current)
    }

    /// Traps if the caller is not on the scheduler.
    func verify() {
        let isHere =
            switch self {
            case .main: Scheduler.isOnMain
            case .queue(_, let number): Scheduler.currentQueue == number
            case .thread(let number): number == .current
            case .task, .none: true
            case .actor(let actor): Scheduler.isOn(actor)
            }
        if !isHere { throwRealmException(RealmMisuse.wrongThread) }
    }

    /// `true` if the caller is on the scheduler, as far as can be determined. For an actor only the given isolation counts.
    func isHere(_ isolation: (any Actor)?) -> Bool {
        switch self {
        case .main: Scheduler.isOnMain
        case .queue(_, let number): Scheduler.currentQueue == number
        case .thread(let number): number == .current
        case .task: true
        case .actor(let actor): isolation === actor
        case .none: false
        }
    }

    /// Swift's runtime traps if the caller is not on the actor; it has no check that returns.
    private static func isOn(_ actor: any Actor) -> Bool {
        actor.preconditionIsolated(RealmMisuse.wrongThread)
        return true
    }
}
