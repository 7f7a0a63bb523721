import GatewayTestSupport
import Logging
import SluiceCore
import SluiceNet
import Synchronization
import Testing

@testable import SluiceGateway

@Suite struct `The log of refused connections` {
    private final class Clock: Environment {
        let now = Atomic<UInt64>(1)

        func wallMilliseconds() -> Int64 { 0 }
        func monotonicNanoseconds() -> UInt64 { now.load(ordering: .relaxed) }
        func random() -> UInt64 { 4 }
        func sleep(nanoseconds: UInt64) async throws {}
    }

    @Test func `has at most one line a minute, which counts all refusals since the one before`() {
        let lines = LinesOfLog()
        let clock = Clock()
        let log = RefusalLog(logger: Logger(label: "test") { _ in lines }, environment: clock)
        func errors() -> [String] { lines.lines.compactMap { $0.metadata["error"]?.description } }
        log.note(.full)
        #expect(
            errors().count == 1 && errors().last?.contains("too-many-connections (107): The client port refused 1 ") == true,
            "\(lines.lines)")
        for _ in 0..<12_000 { log.note(.address) }
        log.note(.evicted)
        #expect(errors().count == 1)
        clock.now.add(60_000_000_000, ordering: .relaxed)
        log.note(.evicted)
        #expect(errors().count == 2 && errors().last?.contains("refused 12002 ") == true, "\(lines.lines)")
        #expect(errors().last?.contains("(address 12000, evicted 2)") == true, "\(lines.lines)")
    }
}
