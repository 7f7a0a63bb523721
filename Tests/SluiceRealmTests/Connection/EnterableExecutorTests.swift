import Dispatch
import Foundation
import SluiceRealm
import Synchronization
import Testing

/// An actor on an executor that calls can enter.
private actor Counter {
    let executor = EnterableExecutor()
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }
    var count = 0
    /// `true` while a change is under way.
    private var isChanging = false
    var overlaps = 0

    func increment() {
        if isChanging { overlaps += 1 }
        isChanging = true
        count += 1
        isChanging = false
    }

    /// Returns `true` if another call could enter.
    func canEnter() -> Bool { executor.enterIfIdle { true } ?? false }

    nonisolated func incrementNow() -> Bool {
        executor.enterIfIdle { assumeIsolated { $0.increment() } } != nil
    }
}

/// A value of several threads.
private final class Shared<Value: Sendable>: Sendable {
    private let state: Mutex<Value>
    init(_ value: Value) { state = Mutex(value) }
    var value: Value { state.withLock(\.self) }
    func change(_ body: @Sendable (inout Value) -> Void) { state.withLock { body(&$0) } }
}

@Suite struct `An enterable executor` {
    @Test func `is entered while it is idle, and is idle again afterwards`() async {
        let counter = Counter()
        #expect(counter.incrementNow() && counter.incrementNow())
        #expect(await counter.count == 2)
    }

    @Test func `is not entered while a call or a job runs`() async {
        let counter = Counter()
        let inner = counter.executor.enterIfIdle { counter.incrementNow() }
        #expect(inner == false)
        #expect(await !counter.canEnter())
        #expect(await counter.count == 0)
    }

    @Test func `is free again after a call that throws`() {
        struct Failure: Error {}
        let counter = Counter()
        #expect(throws: Failure.self) { try counter.executor.enterIfIdle { throw Failure() } }
        #expect(counter.incrementNow())
    }

    @Test func `isolates the thread that has it, and no other`() async {
        let counter = Counter()
        #expect(counter.executor.isIsolatingCurrentContext() == false)
        let (isAsked, answered) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let other = Shared<Bool?>(nil)
        Thread.detachNewThread {
            isAsked.wait()
            let isIsolated = counter.executor.isIsolatingCurrentContext()
            other.change { $0 = isIsolated }
            answered.signal()
        }
        let inside = counter.executor.enterIfIdle {
            isAsked.signal()
            answered.wait()
            return counter.executor.isIsolatingCurrentContext()
        }
        #expect(inside == true)
        #expect(other.value == false)
    }

    @Test func `runs a job that comes during a call after it`() async {
        let counter = Counter()
        let order = Shared<[String]>([])
        let job = counter.executor.enterIfIdle {
            let job = Task {
                await counter.increment()
                order.change { $0.append("job") }
            }
            order.change { $0.append("call") }
            return job
        }
        await job?.value
        #expect(order.value == ["call", "job"])
        #expect(await counter.count == 1)
    }

    /// Threads that enter, and tasks that wait for their turn, change one value.
    @Test func `lets one change at a time, and loses none`() async {
        let counter = Counter()
        let tries = 20_000
        await withTaskGroup(of: Void.self) { group in
            for index in 0..<8 {
                group.addTask {
                    for turn in 0..<tries {
                        let isDone = (index + turn) % 3 > 0 && counter.incrementNow()
                        if !isDone { await counter.increment() }
                    }
                }
            }
        }
        #expect(await counter.count == 8 * tries)
        #expect(await counter.overlaps == 0)
    }
}
