import Dispatch
import Foundation
import Synchronization

/// A thread while it runs.
struct ThreadNumber: Hashable, Sendable {
    let number: UInt

    static var current: ThreadNumber { ThreadNumber(number: withUnsafeBytes(of: pthread_self()) { $0.loadUnaligned(as: UInt.self) }) }
}

extension Scheduler {
    /// What is the same for all Realms of one place.
    enum Place: Hashable, Sendable {
        case main
        case queue(UInt64)
        case actor(ObjectIdentifier)
        case thread(ThreadNumber)
        case task(Int)
    }

    /// Nil: the Realm is shared with no other.
    var place: Place? {
        switch self {
        case .main: .main
        case .queue(_, let number): .queue(number)
        case .actor(let actor): .actor(ObjectIdentifier(actor))
        case .thread(let number): .thread(number)
        case .task(let number): .task(number)
        case .none: nil
        }
    }

    /// The numbers of queues that a Realm lives on. On Linux a queue has more than one Swift object, so those say nothing.
    private static let numberKey = DispatchSpecificKey<UInt64>()
    private static let mainNumber: UInt64 = 0
    private static let lastNumber = Mutex(mainNumber)
    private static let isMainNumbered: Bool = {
        DispatchQueue.main.setSpecific(key: numberKey, value: mainNumber)
        return true
    }()

    /// A queue as the place of a Realm.
    static func of(_ queue: DispatchQueue) -> Scheduler {
        _ = isMainNumbered
        let number = lastNumber.withLock { last in
            if let number = queue.getSpecific(key: numberKey) { return number }
            last += 1
            queue.setSpecific(key: numberKey, value: last)
            return last
        }
        return number == mainNumber ? .main : .queue(queue, number: number)
    }

    /// Nil: a queue that no Realm has lived on, or none.
    private static var currentQueue: UInt64? {
        _ = isMainNumbered
        return DispatchQueue.getSpecific(key: numberKey)
    }

    /// The main thread's number, once it has been seen; 0 before.
    private static let mainThread = Atomic<UInt>(0)

    /// The main queue counts as the main thread: on Linux another thread serves it in programs with an asynchronous `main`.
    ///
    /// Foundation comes last: it asks the system at each question, and every use of a Realm asks.
    private static var isOnMain: Bool {
        let known = mainThread.load(ordering: .relaxed)
        if known == ThreadNumber.current.number || currentQueue == mainNumber { return true }
        guard known == 0, Thread.isMainThread else { return false }
        mainThread.store(ThreadNumber.current.number, ordering: .relaxed)
        return true
    }

    private static var currentTask: Int? { withUnsafeCurrentTask { $0?.hashValue } }

    /// Where the caller is, as far as a synchronous call can tell: on an actor other than the main one, it is a task.
    static var current: Scheduler {
        if isOnMain { return .main }
        return currentTask.map { .task($0) } ?? .thread(.current)
    }

    /// Ends the program when the caller is elsewhere.
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

    /// `true` if the caller is where the Realm lives, as far as that can be told: of an actor by the caller's isolation only.
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

    /// Swift's runtime ends the program itself when the caller is elsewhere: it has no question that returns.
    private static func isOn(_ actor: any Actor) -> Bool {
        actor.preconditionIsolated(RealmMisuse.wrongThread)
        return true
    }
}
