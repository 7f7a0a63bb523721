import Glibc
import SluiceCore
import Testing

@testable import SluicePluginHost

/// What callers send by themselves, and when they wake the host's thread.
@Suite struct HostLineTests {
    /// A line whose host is ready, and the host's end of the socket.
    private final class Rig {
        var line = PluginHostChannel(HostedCalls(plugin: "p", startBudget: 1_000_000, isReplaceable: true))
        let theirs: Int32
        private let ours: Int32
        private var decoder = HostedDecoder()

        init() throws {
            (ours, theirs) = try Descriptors.socketPair()
            Descriptors.makeNonBlocking(ours)
            Descriptors.makeNonBlocking(theirs)
            _ = line.step { $0.tick(now: 0) }
            line.connect(ours)
            _ = line.step { $0.hostStarted(path: "p.so", now: 0) }
            let info = HookAnswer(status: .ok, bytes: Array(#"{"name":"p","version":"1","hooks":[1,2]}"#.utf8))
            _ = line.step { $0.received(id: 0, info, now: 0) }
            #expect(try received() == [0])
        }

        deinit { Descriptors.close(ours, theirs) }

        func submit(_ id: UInt64, bytes: Int = 10, expires: UInt64, now: UInt64) {
            let budget = CallBudget(processor: .max, work: expires - now, patience: expires - now)
            let call = HostedCalls.Call(
                id: id, hook: .openSession, input: [UInt8](repeating: 7, count: bytes), expires: expires, budget: budget)
            _ = line.step { $0.submit(call, now: now) }
        }

        func answer(_ id: UInt64, now: UInt64) {
            _ = line.step { $0.received(id: id, HookAnswer(status: .ok, bytes: []), now: now) }
        }

        /// Numbers of the calls that the host has got.
        func received() throws -> [UInt64] {
            var ids: [UInt64] = []
            while case .bytes(let bytes) = Descriptors.read(theirs) {
                decoder.feed(bytes)
                while let message = try decoder.next() {
                    if case .call(let id, _, _, _, _) = message { ids.append(id) }
                }
            }
            return ids
        }
    }

    @Test("A call is in the host's socket before the thread hears of it")
    func sendsAtOnce() throws {
        let rig = try Rig()
        _ = rig.line.sleep(now: 0)
        rig.submit(1, expires: 5_000, now: 0)
        #expect(try rig.received() == [1])
    }

    @Test("The thread is woken for a deadline before the time at which it looks by itself, and for no other")
    func wakesForEarlierDeadlines() throws {
        let rig = try Rig()
        let first = rig.line.sleep(now: 0)
        #expect(first == (.max, false))
        rig.submit(1, expires: 5_000, now: 0)
        #expect(rig.line.isOverslept)
        rig.line.isAwake = true
        #expect(!rig.line.isOverslept, "who is awake needs no waking")
        let second = rig.line.sleep(now: 10)
        #expect(second == (5_000, false))
        rig.submit(2, expires: 6_000, now: 20)
        #expect(!rig.line.isOverslept)
        rig.submit(3, expires: 4_000, now: 30)
        #expect(rig.line.isOverslept)
    }

    @Test("Calls that come one after another do not wake the thread each: it looks where the first would have been late")
    func staysUntilItsTime() throws {
        let rig = try Rig()
        _ = rig.line.sleep(now: 0)
        rig.submit(1, expires: 5_000, now: 0)
        _ = rig.line.sleep(now: 10)
        rig.answer(1, now: 20)
        let idle = rig.line.sleep(now: 30)
        #expect(idle == (5_000, false), "nobody waits, and it looks all the same")
        rig.submit(2, expires: 5_040, now: 40)
        #expect(!rig.line.isOverslept)
        let later = rig.line.sleep(now: 5_001)
        #expect(later == (5_040, false))
        rig.answer(2, now: 5_010)
        let over = rig.line.sleep(now: 5_041)
        #expect(over == (.max, false))
    }

    @Test("What the socket has no room for waits for the thread, in order, and is sent when there is room")
    func waitsForRoom() throws {
        let rig = try Rig()
        _ = rig.line.sleep(now: 0)
        rig.submit(1, bytes: 4 << 20, expires: 5_000, now: 0)
        rig.submit(2, expires: 5_000, now: 0)
        #expect(rig.line.isUnsent && rig.line.isOverslept)
        let full = rig.line.sleep(now: 10)
        #expect(full == (5_000, true))
        var got: [UInt64] = []
        for _ in 0..<10_000 where got.count < 2 {
            got += try rig.received()
            rig.line.send()
        }
        #expect(got == [1, 2] && !rig.line.isUnsent)
    }

    @Test("What is sent to a host that has ended does not reach the one after it twice")
    func forgetsWithTheHost() throws {
        let rig = try Rig()
        rig.line.disconnect()
        rig.submit(1, expires: 5_000, now: 0)
        #expect(rig.line.isUnsent)
        #expect(try rig.received().isEmpty)
        let (next, theirs) = try Descriptors.socketPair()
        defer { Descriptors.close(next, theirs) }
        rig.line.connect(next)
        #expect(!rig.line.isUnsent)
    }

    @Test("A host has one question at a time, and only what the present one asked is answered")
    func answersQuestions() throws {
        let rig = try Rig()
        let (first, second) = (rig.line.ask(), rig.line.ask())
        let host = try #require(first)
        #expect(second == nil)
        rig.line.tell(HookAnswer(status: .ok, bytes: []), to: host + 1)
        #expect(rig.line.isAsking)
        rig.line.tell(HookAnswer(status: .ok, bytes: []), to: host)
        #expect(!rig.line.isAsking)
    }
}
