import SluiceCore
import SluiceMerge
import TestSupport
import Testing

/// Changes of several writers to one list, compared with a merge without an index.
private struct ListHistory {
    var random: SplitMix64
    /// The state after whole changes, and after changes of one edit each.
    var (together, apart): (ObjectState, ObjectState)
    var plain: PlainListMerge
    private let (hasInside, isDevice): (Bool, Bool)
    private var log: UInt64 = 0
    private var tags: [UInt64] = [0, 0, 0]
    private var changesets: [UInt64] = [0, 0, 0]
    /// The last tag of each changeset, by client.
    private var lastTags: [[UInt64]] = [[0], [0], [0]]
    private let discards: Bool

    init(_ random: SplitMix64, hasInside: Bool) {
        self.random = random
        self.hasInside = hasInside
        let (chance, other) = (self.random.chance(30), self.random.chance(50))
        isDevice = hasInside && chance
        discards = !isDevice && other
        let elements = (0..<self.random.below(6)).map { Value.string(["a", "b", "c"][$0 % 3]) }
        together = ObjectState(values: ["list": .list(elements)], clocks: ObjectClocks())
        together.clocks.properties[8] = PropertyClock(stamp: WriteStamp(time: .zero, client: .server))
        if self.random.chance(50) { together.clocks.created = WriteStamp(time: .zero, client: .server) }
        apart = together
        plain = PlainListMerge(elements)
        plain.isMadeBySQL = together.clocks.created != nil
    }

    private mutating func reference(_ client: Int, _ writer: WriteContext) -> ElementRef {
        let seen = plain.count(for: writer)
        let index = random.below(max(seen, 1) + 1)
        let hash = ValueHash(.string(random.pick(["a", "b", "c", "d", "1-1"])))
        switch random.below(10) {
        case 0..<4:
            // Most writers saw the present element.
            if plain.elements.indices.contains(index), random.chance(70) { return .listed(index, ValueHash(plain.elements[index])) }
            return .listed(index, hash)
        case 4..<7: return .own(1 + UInt64(random.below(Int(tags[client]) + 1)), index: index, hash)
        default: return .seen(seen == 0 || random.chance(2) ? index : random.below(seen))
        }
    }

    private mutating func edit(_ client: Int, _ writer: WriteContext) -> Edit {
        if random.chance(85) { tags[client] += 1 }
        let (tag, new) = (max(tags[client], 1), Value.string(random.pick(["a", "b", "c", "\(client)-\(tags[client])"])))
        let element = EditStep.element(reference(client, writer))
        if hasInside, random.chance(20) { return inner(element, tag, new) }
        let after = random.chance(20) ? nil : reference(client, writer)
        let size = random.chance(10) ? plain.count(for: writer) : nil
        switch random.below(10) {
        case 0..<5: return Edit("list", .insert(new, after: after, tag: tag), priorSize: size)
        case 5: return Edit("list", [element], .remove, priorSize: size)
        case 6..<8: return Edit("list", [element], .move(after: after, tag: tag), priorSize: size)
        default: return Edit("list", [element], .set(new), priorSize: size)
        }
    }

    /// An edit inside of an element, which is a dictionary or a list after one of them.
    private mutating func inner(_ element: EditStep, _ tag: UInt64, _ new: Value) -> Edit {
        let index = random.below(3)
        let other = ElementRef.listed(index, ValueHash(random.chance(50) ? new : .string("a")))
        switch random.below(8) {
        case 0: return Edit("list", [element], .set(.list([new, .string("a")])))
        case 1: return Edit("list", [element], .become(random.chance(50) ? .list : .dictionary))
        case 2: return Edit("list", [element], .clear(.list))
        case 3: return Edit("list", [element, .key("k")], random.chance(70) ? .set(new) : .remove)
        case 4: return Edit("list", [element, .element(other)], random.chance(50) ? .remove : .set(.dictionary(["k": new])))
        case 5: return Edit("list", [element, .element(other)], .move(after: random.chance(50) ? other : nil, tag: tag))
        case 6: return Edit("list", [element, .element(other), .key("k")], .set(new))
        default: return Edit("list", [element], .insert(new, after: random.chance(50) ? other : nil, tag: tag))
        }
    }

    /// - Returns: `false` if the writer contradicts the list that it can have seen. Then the states are as before.
    mutating func step() throws -> Bool {
        let client = random.below(tags.count)
        var writer = WriteContext(
            stamp: WriteStamp(time: HybridTime(milliseconds: Int64(random.below(40))), client: ClientID(rawValue: UInt64(client) + 1)),
            base: LSN(rawValue: UInt64(random.below(Int(log) + 1))), now: LSN(rawValue: log))
        // As a device merges its own changes.
        if isDevice { writer.now = .max }
        if isDevice, random.chance(30) { writer = .underWay(by: writer.stamp.client) }
        if discards {
            changesets[client] += 1
            writer.changeset = changesets[client]
            let last = random.below(lastTags[client].count)
            if random.chance(40) { writer.discarded = DiscardedChanges(changeset: UInt64(last), nextTag: lastTags[client][last] + 1) }
            writer.discarded?.isBeforeCreation = random.chance(30)
        }
        defer { if discards { lastTags[client].append(tags[client]) } }
        let before = (together, apart, plain)
        var edits: [Edit] = []
        do {
            for _ in 0...random.below(12) {
                let edit = edit(client, writer)
                edits.append(edit)
                _ = try plain.perform(edit, by: writer)
            }
        } catch {
            #expect(throws: SluiceError.self) { try Self.apply(edits, by: writer, to: &together) }
            (together, apart, plain) = before
            return false
        }
        try Self.apply(edits, by: writer, to: &together)
        for edit in edits { try Self.apply([edit], by: writer, to: &apart) }
        log += UInt64(random.below(3))
        return true
    }

    private static func apply(_ edits: [Edit], by writer: WriteContext, to state: inout ObjectState) throws {
        var change = ObjectChange(object: ObjectKey(type: "Thing", key: .int(1)), kind: .set, edits: edits)
        change.discarded["list"] = writer.discarded
        try Merge.apply(change, by: writer, to: &state, type: folder)
    }

    mutating func prune() throws {
        let horizon = LSN(rawValue: UInt64(random.below(Int(log) + 1)))
        together.clocks.prune(below: horizon)
        apart.clocks.prune(below: horizon)
        if let list {
            plain.places = list.places
        } else {
            let isMadeBySQL = plain.isMadeBySQL
            plain = PlainListMerge(plain.elements)
            plain.isMadeBySQL = isMadeBySQL
        }
        plain.isTouched = list != nil
    }

    var list: ListClock? {
        guard case .list(let list)? = together.clocks.properties[8]?.contents else { return nil }
        return list
    }
}

@Suite struct OpenListTests {
    @Test(arguments: seeds(4)) func `edits of one change come to what each by itself comes to`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for round in 0..<20 {
            var history = ListHistory(SplitMix64(seed: random.next()), hasInside: false)
            for step in 0..<12 {
                let words: Comment = "seed \(seed), round \(round), step \(step)"
                guard try history.step() else { continue }
                try #require(history.together == history.apart, words)
                try #require(history.together.values?["list"] == .list(history.plain.elements), words)
                try #require(history.list?.places == (history.plain.isTouched ? history.plain.places : nil), words)
                #expect(try ObjectClocks(encoded: history.together.clocks.encoded) == history.together.clocks, words)
                if history.random.chance(15) { try history.prune() }
            }
        }
    }

    @Test(arguments: seeds(4)) func `so do edits inside of elements, on a device too`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for round in 0..<20 {
            var history = ListHistory(SplitMix64(seed: random.next()), hasInside: true)
            for step in 0..<12 {
                let words: Comment = "seed \(seed), round \(round), step \(step)"
                guard try history.step() else { continue }
                try #require(history.together == history.apart, words)
                try #require(history.together.values?["list"] == .list(history.plain.elements), words)
                try #require(history.list?.places == (history.plain.isTouched ? history.plain.places : nil), words)
                if history.random.chance(15) { try history.prune() }
            }
        }
    }

    @Test(arguments: seeds(2)) func `members of a set come and go together as one by one`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for round in 0..<20 {
            var together = ObjectState(values: ["set": .set((0..<random.below(5)).map { .int(Int64($0)) })], clocks: ObjectClocks())
            var apart = together
            for step in 0..<6 {
                let writer = WriteContext(
                    stamp: WriteStamp(
                        time: HybridTime(milliseconds: Int64(random.below(9))), client: ClientID(rawValue: UInt64(1 + random.below(3)))),
                    base: LSN(rawValue: UInt64(random.below(step + 1))), now: LSN(rawValue: UInt64(step)))
                let edits = (0..<random.below(8)).map { _ -> Edit in
                    let member = Value.int(Int64(random.below(7)))
                    return random.chance(5)
                        ? Edit("set", .clear(.set)) : Edit("set", random.chance(60) ? .setInsert(member) : .setErase(member))
                }
                try Merge.apply(.edits(edits), by: writer, to: &together, type: folder)
                for edit in edits { try Merge.apply(.edits([edit]), by: writer, to: &apart, type: folder) }
                try #require(together == apart, "seed \(seed), round \(round)")
            }
        }
    }

    #if DEBUG
        // MARK: Cost

        private static let base: UInt64 = 10

        private static func writer(_ client: UInt64, base: UInt64 = base) -> WriteContext {
            WriteContext(
                stamp: WriteStamp(time: HybridTime(milliseconds: 50), client: ClientID(rawValue: client)), base: LSN(rawValue: base),
                now: LSN(rawValue: base))
        }

        /// The places that are looked at for edits of a list of as many elements.
        private func work(_ count: Int, _ edits: [Edit], concurrent: [Edit] = [], of values: [Value]? = nil) throws -> Int {
            var state = ObjectState(
                values: ["list": .list(values ?? (0..<count).map { .int(Int64($0)) })], clocks: ObjectClocks())
            let counter = MergeWork.Counter()
            try MergeWork.$counter.withValue(counter) {
                if !concurrent.isEmpty { try Merge.apply(.edits(concurrent), by: Self.writer(2), to: &state, type: folder) }
                try Merge.apply(.edits(edits), by: Self.writer(1), to: &state, type: folder)
            }
            return counter.places
        }

        private func listed(_ index: Int, _ value: Int? = nil) -> ElementRef { .listed(index, ValueHash(.int(Int64(value ?? index)))) }

        /// Twice the edits of a list twice as long look at little more than twice the places: the rest is the logarithm.
        private func expectLinear(_ name: String, _ work: (Int) throws -> Int) throws {
            let (one, two) = (try work(1_000), try work(2_000))
            #expect(two * 10 <= one * 24 && one < 1_000 * 200, "\(name): \(one) and \(two) places")
        }

        private func inserts(_ count: Int, behind first: ElementRef?) -> [Edit] {
            (0..<count).map { index in
                let after: ElementRef? = index == 0 ? first : .own(UInt64(index), index: index, ValueHash(.int(0)))
                return Edit("list", .insert(.int(0), after: after, tag: UInt64(index + 1)))
            }
        }

        @Test func `n edits of a list of n elements look at n places, but for the logarithm`() throws {
            try expectLinear("appends") { try work($0, inserts($0, behind: listed($0 - 1))) }
            try expectLinear("insertions at the start") { count in
                try work(count, (0..<count).map { Edit("list", .insert(.int(0), after: nil, tag: UInt64($0 + 1))) })
            }
            try expectLinear("insertions in the middle, each behind another element") { count in
                try work(
                    count,
                    (0..<count).map { Edit("list", .insert(.int(0), after: listed($0 * 7 % count), tag: UInt64($0 + 1))) })
            }
            try expectLinear("sets") { count in
                try work(count, (0..<count).map { Edit("list", [.element(listed($0 * 7 % count))], .set(.int(-1))) })
            }
            try expectLinear("removals") { count in
                try work(count, (0..<count).map { Edit("list", [.element(listed($0 * 7 % count))], .remove) })
            }
            try expectLinear("moves") { count in
                try work(
                    count,
                    (0..<count).map { Edit("list", [.element(listed($0 * 7 % count))], .move(after: listed($0), tag: UInt64($0 + 1))) })
            }
        }

        @Test func `what others did meanwhile, and a list that is not known any more, make edits no dearer`() throws {
            try expectLinear("appends beside those of others") { count in
                let edits = inserts(count, behind: listed(count - 1))
                return try work(count, edits, concurrent: edits)
            }
            try expectLinear("insertions where others inserted") { count in
                let edits = (0..<count).map { Edit("list", .insert(.int(0), after: listed($0), tag: UInt64($0 + 1))) }
                return try work(count, edits, concurrent: edits)
            }
            try expectLinear("sets of elements that stand elsewhere") { count in
                try work(count, (0..<count).map { Edit("list", [.element(listed($0, ($0 + 9) % count))], .set(.int(-1))) })
            }
            try expectLinear("sets of equal elements that stand elsewhere") { count in
                let values = (0..<count).map { Value.int(Int64($0 % 2)) }
                return try work(count, (0..<count).map { Edit("list", [.element(listed($0, ($0 + 1) % 2))], .set(.int(-1))) }, of: values)
            }
        }
    #endif
}

extension ObjectChange {
    fileprivate static func edits(_ edits: [Edit]) -> ObjectChange {
        ObjectChange(object: ObjectKey(type: "Thing", key: .int(1)), kind: .set, edits: edits)
    }
}
