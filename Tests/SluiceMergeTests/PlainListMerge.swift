import SluiceCore
@testable import SluiceMerge

/// The rules for lists without an index: the oracle of `OpenList`. Each edit visits every place. Lists inside of elements are merged so
/// too. Other edits inside of elements use `EditMerge`.
struct PlainListMerge {
    var elements: [Value]
    var places: [ListClock.Place]
    /// `true` if an edit has had an effect, so that the clock has the places.
    var isTouched = false
    /// `true` if SQL created the object.
    var isMadeBySQL = false

    /// The point of view from which a list is read.
    private enum Eyes {
        case present
        case base(LSN)
        case writer(WriteContext)

        func sees(_ lsn: LSN, by client: ClientID, isDiscarded: (DiscardedChanges) -> Bool = { _ in false }) -> Bool {
            switch self {
            case .present: true
            case .base(let base): lsn == .zero || base > lsn
            case .writer(let writer):
                (writer.discarded?.isBeforeCreation != true && (lsn == .zero || writer.base > lsn))
                    || (client == writer.stamp.client && !(writer.discarded.map(isDiscarded) ?? false))
            }
        }
    }

    private struct Element {
        var first: Int
        var place: Int
    }

    private struct Found {
        var first: Int
        var seenAt: Int
    }

    init(_ elements: [Value], _ contents: Contents? = nil) {
        self.elements = elements
        if case .list(let list)? = contents {
            places = list.places
            if self.elements(.present).count == elements.count {
                isTouched = true
                return
            }
        }
        places = elements.indices.map { index in
            let left = index == 0 ? nil : ListClock.ID(client: .server, tag: UInt64(index - 1))
            return ListClock.Place(
                stamp: WriteStamp(time: .zero, client: .server), tag: UInt64(index), parent: left, isLeft: false, element: nil, lsn: .zero)
        }
    }

    /// The number of elements that a writer sees.
    func count(for writer: WriteContext) -> Int { elements(.writer(writer)).count }

    // MARK: Editing

    mutating func perform(_ edit: Edit, by writer: WriteContext) throws(SluiceError) -> Merge.Outcome {
        let before = self
        do throws(SluiceError) {
            return try change(edit, by: writer)
        } catch {
            // SQL may have replaced the list that the writer saw, unless a client had changed it before.
            let isKnown = before.places.contains { place in
                place.stamp != .zero && writer.baseSees(place.lsn) || place.removals.contains { writer.baseSees($0.lsn) }
            }
            guard isMadeBySQL, writer.changeset > 0, !isKnown else { throw error }
            self = before
            return .lost
        }
    }

    private mutating func change(_ edit: Edit, by writer: WriteContext) throws(SluiceError) -> Merge.Outcome {
        let before = places
        let outcome = try merge(edit, by: writer)
        isTouched = isTouched || places != before
        return outcome
    }

    private mutating func merge(_ edit: Edit, by writer: WriteContext) throws(SluiceError) -> Merge.Outcome {
        let isInside = edit.path.count > 1 || edit.path.count == 1 && edit.action.isInsertion
        if !isInside, let size = edit.priorSize, size != count(for: writer) { throw SluiceError(.badChangeset, "size") }
        if case .insert(let new, let after, let tag) = edit.action, !isInside {
            if index(of: ListClock.ID(client: writer.stamp.client, tag: tag)) != nil { return .same }
            add(tag, nil, behind: try anchor(after, writer), writer)
            let id = ListClock.ID(client: writer.stamp.client, tag: tag)
            elements.insert(new, at: index(of: id).flatMap { presentIndex(of: $0) } ?? elements.count)
            return .changed
        }
        guard case .element(let reference)? = edit.path.first, let found = try find(reference, writer) else { return .lost }
        let present = presentIndex(of: found.first)
        switch edit.action {
        case .remove where !isInside:
            places[found.first].removals.append(
                ListClock.Removal(client: writer.stamp.client, lsn: writer.now, changeset: writer.changeset))
            guard let present else { return .same }
            remember(found.first, elements[present], writer)
            elements.remove(at: present)
            return .changed
        case .move(let after, let tag) where !isInside:
            if index(of: ListClock.ID(client: writer.stamp.client, tag: tag)) != nil { return .same }
            let order = elements(.present).map { places[$0.first].id }
            add(tag, places[found.first].id, behind: try anchor(after, writer), writer)
            let moved = elements(.present).compactMap { order.firstIndex(of: places[$0.first].id) }
            if moved == Array(order.indices) { return .same }
            elements = moved.map { elements[$0] }
            return .changed
        default:
            guard let present else { return .lost }
            var clock = places[found.first].value?.clock ?? PropertyClock(stamp: places[found.first].stamp)
            let before = elements[present]
            let inner = Edit(edit.property, Array(edit.path.dropFirst()), edit.action, priorSize: edit.priorSize)
            let outcome = try PlainListMerge.perform(inner, by: writer, inside: &elements[present], &clock)
            if outcome == .lost { return .lost }
            remember(found.first, before, writer)
            places[found.first].value = Contents.Entry(clock: clock, lsn: writer.now)
            return outcome
        }
    }

    private static func perform(
        _ edit: Edit, by writer: WriteContext, inside value: inout Value, _ clock: inout PropertyClock
    ) throws(SluiceError) -> Merge.Outcome {
        var isElement = false
        if case .element? = edit.path.first { isElement = true }
        guard isElement || edit.path.isEmpty && edit.action.isInsertion, case .list(let elements) = value else {
            return try EditMerge(edit: edit, writer: writer).apply(to: &value, &clock)
        }
        guard clock.reset?.admits(writer) ?? true else { return .lost }
        var list = PlainListMerge(elements, clock.contents)
        let outcome = try list.change(edit, by: writer)
        value = .list(list.elements)
        if list.isTouched { clock.contents = .list(ListClock(places: list.places)) }
        if !isElement, outcome == .changed { clock.makeExplicit() }
        return outcome
    }

    private mutating func remember(_ first: Int, _ value: Value, _ writer: WriteContext) {
        if places[first].original == nil { places[first].original = ListClock.Original(hash: ValueHash(value), until: writer.now) }
    }

    // MARK: Finding

    private func elements(_ eyes: Eyes) -> [Element] {
        var current: [ListClock.ID: Int] = [:]
        for index in places.indices where sees(index, eyes) {
            if let other = current[places[index].first], isLater(places[other], than: places[index]) { continue }
            current[places[index].first] = index
        }
        return places.indices.compactMap { index in
            guard sees(index, eyes), current[places[index].first] == index, let first = self.index(of: places[index].first),
                places[first].element == nil, sees(first, eyes),
                !places[first].removals.contains(where: { removal in
                    eyes.sees(removal.lsn, by: removal.client) { removal.changeset <= $0.changeset }
                })
            else { return nil }
            return Element(first: first, place: index)
        }
    }

    private func sees(_ index: Int, _ eyes: Eyes) -> Bool {
        eyes.sees(places[index].lsn, by: places[index].stamp.client) { places[index].tag < $0.nextTag }
    }

    private func index(of id: ListClock.ID) -> Int? { places.firstIndex { $0.id == id } }

    private func presentIndex(of first: Int) -> Int? { elements(.present).firstIndex { $0.first == first } }

    private func isLater(_ one: ListClock.Place, than other: ListClock.Place) -> Bool { (one.stamp, one.tag) > (other.stamp, other.tag) }

    private func find(_ reference: ElementRef, _ writer: WriteContext) throws(SluiceError) -> Found? {
        let mine = Eyes.writer(writer)
        switch reference {
        case .listed(let index, let hash): return find(listed: index, hash, writer)
        case .own(let tag, let index, let hash):
            if let first = self.index(of: ListClock.ID(client: writer.stamp.client, tag: tag)), places[first].element == nil {
                return Found(first: first, seenAt: place(of: first, mine) ?? first)
            }
            return find(listed: index, hash, writer)
        case .seen(let index):
            let seen = elements(mine)
            guard seen.indices.contains(index) else { throw SluiceError(.badChangeset, "index") }
            return Found(first: seen[index].first, seenAt: seen[index].place)
        }
    }

    private func find(listed index: Int, _ hash: ValueHash, _ writer: WriteContext) -> Found? {
        let listed = elements(.base(writer.base))
        let present = Dictionary(
            uniqueKeysWithValues: zip(elements(.present).map(\.first), elements).map { ($0, $1) })
        func found(_ element: Element) -> Found {
            Found(first: element.first, seenAt: place(of: element.first, .writer(writer)) ?? element.place)
        }
        func was(_ element: Element) -> Bool? {
            let (place, base) = (places[element.first], Eyes.base(writer.base))
            if let original = place.original, !base.sees(original.until, by: .server) { return original.hash == hash }
            if let value = place.value, !base.sees(value.lsn, by: .server) { return nil }
            return present[element.first].map { ValueHash($0) == hash }
        }
        if listed.indices.contains(index), was(listed[index]) != false { return found(listed[index]) }
        var like = listed.indices.filter { was(listed[$0]) == true }
        if like.isEmpty { like = listed.indices.filter { places[listed[$0].first].original?.hash == hash } }
        return like.min { abs($0 - index) < abs($1 - index) }.map { found(listed[$0]) }
    }

    private func place(of first: Int, _ eyes: Eyes) -> Int? {
        places.indices.filter { places[$0].first == places[first].id && sees($0, eyes) }.max { isLater(places[$1], than: places[$0]) }
    }

    private func anchor(_ reference: ElementRef?, _ writer: WriteContext) throws(SluiceError) -> Int? {
        guard let reference else { return nil }
        if let found = try find(reference, writer) { return found.seenAt }
        let seen = elements(.writer(writer))
        switch reference {
        case .listed(let index, _), .own(_, let index, _), .seen(let index):
            return seen.isEmpty ? nil : seen[min(index, seen.count - 1)].place
        }
    }

    // MARK: Adding places

    private mutating func add(_ tag: UInt64, _ element: ListClock.ID?, behind left: Int?, _ writer: WriteContext) {
        let eyes = Eyes.writer(writer)
        let next = places.indices.dropFirst(left.map { $0 + 1 } ?? 0).first { sees($0, eyes) }
        let parent = left.map { places[$0].id }
        var place = ListClock.Place(
            stamp: writer.stamp, tag: tag, parent: parent, isLeft: false, element: element, lsn: writer.now)
        if let next, places.indices.contains(where: { places[$0].parent == parent && !places[$0].isLeft && sees($0, eyes) }) {
            (place.parent, place.isLeft) = (places[next].id, true)
        }
        places.insert(place, at: position(for: place))
    }

    private func position(for place: ListClock.Place) -> Int {
        let siblings = places.indices.filter { places[$0].parent == place.parent && places[$0].isLeft == place.isLeft }
        guard !siblings.isEmpty else {
            guard let parent = place.parent.flatMap({ index(of: $0) }) else { return 0 }
            return place.isLeft ? parent : parent + 1
        }
        let before = siblings.filter { isLater(place, than: places[$0]) }
        if let last = before.max(by: { isLater(places[$1], than: places[$0]) }) { return bounds(below: last).upperBound }
        let first = siblings.min { isLater(places[$1], than: places[$0]) } ?? 0
        return bounds(below: first).lowerBound
    }

    private func bounds(below root: Int) -> Range<Int> {
        func isBelow(_ index: Int) -> Bool {
            var (at, steps): (Int?, Int) = (index, 0)
            while let here = at, steps <= places.count {
                if here == root { return true }
                at = places[here].parent.flatMap { self.index(of: $0) }
                steps += 1
            }
            return false
        }
        var (low, high) = (root, root + 1)
        while low > 0, isBelow(low - 1) { low -= 1 }
        while high < places.count, isBelow(high) { high += 1 }
        return low..<high
    }
}

extension Edit.Action {
    fileprivate var isInsertion: Bool { if case .insert = self { true } else { false } }
}
