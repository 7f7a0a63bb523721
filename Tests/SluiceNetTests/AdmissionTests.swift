import NIOCore
import SluiceCore
import SluiceNet
import TestSupport
import Testing

/// The pure parts of admission.
@Suite(.timeLimit(.minutes(1)))
struct AdmissionTests {
    /// Connections in the order in which they were used last, counted one by one.
    private struct Model {
        struct Connection {
            var id: Admission.ID
            var group: NetworkAddress?
            var isAuthenticated = false
        }

        var open: [Connection] = []
        func count(_ group: NetworkAddress) -> Int { open.count { $0.group == group } }
        func unauthenticated(_ group: NetworkAddress) -> Int { open.count { $0.group == group && !$0.isAuthenticated } }
        var unauthenticated: Int { open.count { !$0.isAuthenticated } }
    }

    @Test func `admission decides as counting one by one does, and stays within its bounds`() {
        let limits = AdmissionLimits(connections: 12, unauthenticated: 7, connectionsPerAddress: 5, unauthenticatedPerAddress: 3)
        var random = SplitMix64()
        for _ in 0..<40 {
            var (admission, model) = (Admission(limits: limits), Model())
            for _ in 0..<400 {
                Self.step(&admission, &model, limits, &random)
                #expect(admission.count == model.open.count, "seed \(random.seed)")
                #expect(admission.unauthenticated == model.unauthenticated, "seed \(random.seed)")
                #expect(admission.count <= limits.connections && admission.unauthenticated <= limits.unauthenticated, "seed \(random.seed)")
                #expect(admission.size <= 2 * limits.connections + 2 * limits.unauthenticated + 66, "seed \(random.seed)")
            }
        }
    }

    private static func step(_ admission: inout Admission, _ model: inout Model, _ limits: AdmissionLimits, _ random: inout SplitMix64) {
        let group = NetworkAddress(v4: .random(in: 1...5, using: &random))
        let index = model.open.indices.randomElement(using: &random)
        switch Int.random(in: 0..<8, using: &random) {
        case 0...3:
            let isExempt = Int.random(in: 0..<6, using: &random) == 0
            open(isExempt ? nil : group, &admission, &model, limits, random.seed)
        case 4:
            guard let index else { return }
            admission.authenticate(model.open[index].id)
            model.open[index].isAuthenticated = true
        case 5:
            guard let index else { return }
            admission.touch(model.open[index].id)
            model.open.append(model.open.remove(at: index))
        case 6:
            guard let index, model.open[index].group == nil else { return }
            let isOver = model.count(group) >= limits.connectionsPerAddress
            let isFull = model.unauthenticated(group) >= limits.unauthenticatedPerAddress
            let refusal = admission.identify(model.open[index].id, as: group)
            #expect(refusal == (isOver ? .address : isFull ? .addressUnauthenticated : nil), "seed \(random.seed)")
            if refusal == nil { model.open[index].group = group }
        default:
            guard let index else { return }
            admission.close(model.open.remove(at: index).id)
        }
    }

    private static func open(
        _ group: NetworkAddress?, _ admission: inout Admission, _ model: inout Model, _ limits: AdmissionLimits, _ seed: UInt64
    ) {
        let decision = admission.open(group)
        if let group, model.count(group) >= limits.connectionsPerAddress {
            #expect(decision == .refuse(.address), "seed \(seed)")
        } else if let group, model.unauthenticated(group) >= limits.unauthenticatedPerAddress {
            #expect(decision == .refuse(.addressUnauthenticated), "seed \(seed)")
        } else {
            let isFull = model.open.count >= limits.connections || model.unauthenticated >= limits.unauthenticated
            let victim = isFull ? model.open.first { !$0.isAuthenticated }?.id : nil
            if isFull, victim == nil {
                #expect(decision == .refuse(.full), "seed \(seed)")
                return
            }
            guard case .admit(let id, let evicted) = decision else {
                Issue.record("\(decision), seed \(seed)")
                return
            }
            #expect(evicted == victim, "seed \(seed)")
            model.open.removeAll { $0.id == victim }
            model.open.append(.init(id: id, group: group))
        }
    }

    @Test func `requests of an address come back with time, and few addresses are remembered`() {
        var buckets = TokenBuckets<NetworkAddress>(capacity: 3, secondsPerToken: 0.5, names: 10)
        let one = NetworkAddress(v4: 1)
        var waits: [Int?] = []
        for _ in 0..<4 { waits.append(buckets.admit(one, now: 0)) }
        waits.append(buckets.admit(NetworkAddress(v4: 2), now: 0))
        for _ in 0..<2 { waits.append(buckets.admit(one, now: 500_000_000)) }
        #expect(waits == [nil, nil, nil, 1, nil, nil, 1])
        for number in 0..<10_000 { _ = buckets.admit(NetworkAddress(v4: UInt32(number)), now: 0) }
        #expect(buckets.count <= 20)
    }

    @Test func `a body is late only for what the peer owes`() {
        var bounds = BodyPace.Bounds()
        (bounds.bytesPerSecond, bounds.grace, bounds.total, bounds.provenTotal) = (100, 2_000_000_000, 30_000_000_000, 300_000_000_000)
        let second: UInt64 = 1_000_000_000
        var random = SplitMix64()
        for _ in 0..<200 {
            // A sender with the rate, and a server that pauses for any time between two pieces.
            var pace = BodyPace(bounds, now: 0)
            var (now, waited): (UInt64, UInt64) = (0, 0)
            while waited < 29 * second {
                let wait = UInt64.random(in: 1...second, using: &random)
                (now, waited) = (now + wait, waited + wait)
                let left = pace.left(now: now, isProven: false)
                if waited < bounds.total { #expect(left != 0, "seed \(random.seed)") }
                pace.received(Int(wait / 10_000_000) + 1, now: now)
                let paused = pace.left(now: now, isProven: false)
                #expect(paused == nil)
                now += UInt64.random(in: 0...100 * second, using: &random)
                pace.reading(now: now)
            }
            let left = pace.left(now: now + 2 * second, isProven: false)
            #expect(left == 0, "the whole time is over, seed \(random.seed)")
        }
        var drip = BodyPace(bounds, now: 0)
        drip.received(1, now: second)
        drip.reading(now: second)
        drip.received(1, now: 2 * second)
        drip.reading(now: 2 * second)
        let left = drip.left(now: 3 * second, isProven: true)
        #expect(left == 0)
    }
}
