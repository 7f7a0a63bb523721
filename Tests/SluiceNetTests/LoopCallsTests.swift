import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import SluiceNet

@Suite struct `The short calls of an event loop` {
    @Test func `are made on the loop, in the order in which each thread adds them`() async throws {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let calls = LoopCalls(loop)
        let made = Made([Int](), count: 3)
        await withDiscardingTaskGroup { tasks in
            for thread in 0..<3 {
                tasks.addTask {
                    for number in 0..<1_000 {
                        calls.add {
                            loop.preconditionInEventLoop()
                            made.lists.withLock { $0[thread].append(number) }
                        }
                    }
                }
            }
        }
        // Behind the task of all calls.
        try await loop.submit {}.get()
        #expect(made.lists.withLock { $0 } == Array(repeating: Array(0..<1_000), count: 3))
    }

    @Test func `take one task of the loop together, and those that they add take the next`() async throws {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let calls = LoopCalls(loop)
        let made = Made([String](), count: 1)
        @Sendable func note(_ text: String) { made.lists.withLock { $0[0].append(text) } }
        // From the loop, so that none of the calls is made meanwhile.
        try await loop.submit {
            calls.add {
                note("first")
                calls.add { note("third") }
            }
            loop.execute { note("task") }
            calls.add { note("second") }
        }.get()
        try await loop.submit {}.get()
        #expect(made.lists.withLock { $0[0] } == ["first", "second", "task", "third"])
    }
}

/// The calls that were made, in lists.
private final class Made<Element: Sendable>: Sendable {
    let lists: Mutex<[[Element]]>

    init(_ empty: [Element], count: Int) { lists = Mutex(Array(repeating: empty, count: count)) }
}
