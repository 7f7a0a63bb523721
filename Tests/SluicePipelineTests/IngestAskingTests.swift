import SluiceCore
import SluicePipeline
import SluicePorts
import TestSupport
import Testing

/// Rules that fail at some objects, asked as the sink asks them.
private struct Rules {
    /// What the rules say when one of these is among the objects.
    var errors: [Int: ErrorCode] = [:]
    /// Fails whatever is asked, also about nothing; nil: does not.
    var outage: ErrorCode?
    var calls: [Range<Int>] = []

    mutating func decide(_ count: Int) throws(SluiceError) -> [Result<IngestVerdict, SluiceError>?] {
        var asking = IngestAsking(count: count)
        while true {
            let asked: Range<Int>
            switch try asking.next() {
            case .ask(let range): asked = range
            case .probe: asked = 0..<0
            case .done: return asking.verdicts
            }
            calls.append(asked)
            if let code = outage ?? errors.sorted(by: { $0.key < $1.key }).first(where: { asked.contains($0.key) })?.value {
                try asking.failed(SluiceError(code, "call \(calls.count)"))
            } else {
                asking.answered(asked.map { .drop(reason: "\($0)") })
            }
        }
    }
}

@Suite struct `Asking the ingest rules` {
    @Test(arguments: seeds(200)) func `decides about all objects but those that the rules fail at`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let count = 1 + random.below(random.chance(20) ? 2_500 : 60)
        var codes: [ErrorCode] = [.pluginCrashed, .pluginTimeout, .pluginBadAnswer, .pluginRefused, .limitsExceeded]
        // Believed when there is no other.
        if count > 6 { codes.append(.pluginFailed) }
        var rules = Rules()
        for _ in 0..<random.below(6) { rules.errors[random.below(count)] = random.pick(codes) }
        let verdicts = try rules.decide(count)
        #expect(verdicts.count == count, "seed \(seed)")
        for (index, verdict) in verdicts.enumerated() {
            switch verdict {
            case .success(let verdict): #expect(rules.errors[index] == nil && verdict == .drop(reason: "\(index)"), "seed \(seed)")
            case .failure(let error): #expect(error.code == rules.errors[index], "seed \(seed)")
            case nil: Issue.record("seed \(seed): nothing is known about object \(index)")
            }
        }
    }

    @Test func `costs one call when nothing fails, and some for each level when something does`() throws {
        var rules = Rules()
        _ = try rules.decide(100)
        #expect(rules.calls == [0..<100])
        rules = Rules(errors: [77: .pluginCrashed])
        _ = try rules.decide(100)
        // Seven levels of two halves and a probe, and the one again.
        #expect(rules.calls.count <= 2 + 7 * 3 + 2, "\(rules.calls)")
    }

    @Test func `believes a failure only when it happens again`() throws {
        var asking = IngestAsking(count: 1)
        #expect(try asking.next() == .ask(0..<1))
        try asking.failed(SluiceError(.pluginCrashed, "somebody ended the host"))
        #expect(try asking.next() == .probe)
        asking.answered([])
        #expect(try asking.next() == .ask(0..<1))
        asking.answered([.accept])
        #expect(try asking.next() == .done)
        #expect(try asking.verdicts.first??.get() == .accept)
    }

    @Test(arguments: [ErrorCode.pluginCrashed, .pluginTimeout, .pluginUnavailable, .pluginFailed, .postgresUnreachable, .logDelivery])
    func `decides nothing when the rules answer nobody`(code: ErrorCode) {
        var rules = Rules(outage: code)
        #expect { try rules.decide(10) } throws: { ($0 as? SluiceError)?.code == code }
        #expect(rules.calls.count <= 2)
    }

    @Test func `believes rules that cannot decide about anything, and not those that can about others`() throws {
        var rules = Rules(errors: [0: .pluginFailed, 1: .pluginFailed])
        #expect { try rules.decide(2) } throws: { ($0 as? SluiceError)?.code == .pluginFailed }
        rules.calls = []
        let verdicts = try rules.decide(3)
        let codes = verdicts.map { verdict -> ErrorCode? in if case .failure(let error)? = verdict { error.code } else { nil } }
        #expect(codes == [.pluginFailed, .pluginFailed, nil])
        // It was asked about them again after it had decided about the third.
        #expect(rules.calls.lastIndex(of: 0..<1) ?? 0 > rules.calls.firstIndex(of: 2..<3) ?? .max)
    }
}
