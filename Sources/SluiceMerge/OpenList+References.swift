import SluiceCore

/// The search for the element that a writer means, from the writer's point of view. So changes of others that arrived earlier make no
/// difference.
extension OpenList {
    /// The location of an element: its first place, and the place where its writer saw it.
    struct Found {
        var first: Int
        var seenAt: Int
    }

    /// - Returns: `nil` if the list has no such element and no record of one.
    /// - Throws: `badChangeset` if the index is outside the list that the writer saw.
    func find(_ reference: ElementRef) throws(SluiceError) -> Found? {
        switch reference {
        case .listed(let index, let hash): return find(listed: index, hash)
        case .own(let tag, let index, let hash):
            if let first = self.index(of: ListClock.ID(client: writer.stamp.client, tag: tag)), places[first].element == nil {
                return found(first, at: first)
            }
            return find(listed: index, hash)
        case .seen(let index):
            guard let place = tree.select(.mine, index) else {
                // Withheld: the writer may not see the list.
                throw SluiceError(
                    .badChangeset, "A change names element \(index) of a list that had no such element for its writer.",
                    value: "\(tree.count(.mine)) elements")
            }
            return Found(first: Int(elements[place].first), seenAt: place)
        }
    }

    private func found(_ first: Int, at place: Int) -> Found {
        let mine = Int(elements[first].mine)
        return Found(first: first, seenAt: mine >= 0 ? mine : place)
    }

    private func find(listed index: Int, _ hash: ValueHash) -> Found? {
        if let place = tree.select(.base, index), case let first = Int(elements[place].first), was(hash, first) != false {
            return found(first, at: place)
        }
        // The list that the writer saw is unknown. Take the nearest element with the same value, or with that first value.
        if valueIndex == nil { indexValues() }
        while let entry = nearest(valueIndex?.known[hash], to: index), let place = base(valueIndex?.known[hash], entry) {
            let first = Int(elements[place].first)
            if was(hash, first) == true { return found(first, at: place) }
            // Two edits since then: the value that the writer saw is unknown, and stays so.
            valueIndex?.known[hash]?.remove(at: entry)
        }
        guard let entry = nearest(valueIndex?.originals[hash], to: index), let place = base(valueIndex?.originals[hash], entry) else {
            return nil
        }
        return found(Int(elements[place].first), at: place)
    }

    private func base(_ numbers: [Int32]?, _ entry: Int) -> Int? { numbers.flatMap { tree.select(.base, Int($0[entry])) } }

    /// `true` if an element had the value in the base's list. `nil` if that is unknown.
    private func was(_ hash: ValueHash, _ first: Int) -> Bool? {
        // Only the first and the last value are known.
        if let original = places[first].original, !writer.baseSees(original.until) { return original.hash == hash }
        if let value = places[first].value, !writer.baseSees(value.lsn) { return nil }
        return presentPlace(of: first) == nil ? nil : ValueHash(values[first]) == hash
    }

    // MARK: By value

    /// The indices in the base's list by value, ascending. The writer's own edits do not change that list.
    struct ValueIndex {
        /// By the value in the base's list, if known. Edits can make it unknown.
        var known: [ValueHash: [Int32]] = [:]
        /// By the inserted value, of elements that have another value now or are removed.
        var originals: [ValueHash: [Int32]] = [:]
    }

    /// O(places).
    private func indexValues() {
        var index = ValueIndex()
        var number: Int32 = -1
        for place in tree.order where tree.mask(place).contains(.base) {
            number += 1
            let first = Int(elements[place].first)
            if let original = places[first].original {
                index.originals[original.hash, default: []].append(number)
                if !writer.baseSees(original.until) {
                    index.known[original.hash, default: []].append(number)
                    continue
                }
            }
            if let value = places[first].value, !writer.baseSees(value.lsn) { continue }
            if presentPlace(of: first) != nil { index.known[ValueHash(values[first]), default: []].append(number) }
        }
        valueIndex = index
    }

    /// Adds the inserted value of an element to the index, after the first change of the value.
    func noteOriginal(_ hash: ValueHash, of first: Int) {
        let place = Int(elements[first].base)
        guard valueIndex != nil, place >= 0, tree.mask(place).contains(.base) else { return }
        let number = tree.rank(.base, of: place)
        let entry = lowerBound(valueIndex?.originals[hash] ?? [], number)
        valueIndex?.originals[hash, default: []].insert(Int32(number), at: entry)
    }

    /// Returns the entry nearest to an index of the base's list, the first of two.
    private func nearest(_ numbers: [Int32]?, to index: Int) -> Int? {
        guard let numbers, !numbers.isEmpty else { return nil }
        let entry = lowerBound(numbers, index)
        if entry == 0 { return 0 }
        if entry == numbers.count { return entry - 1 }
        return index - Int(numbers[entry - 1]) <= Int(numbers[entry]) - index ? entry - 1 : entry
    }

    /// Returns the number of entries below an index.
    private func lowerBound(_ numbers: [Int32], _ index: Int) -> Int {
        var (low, high) = (0, numbers.count)
        while low < high {
            let middle = (low + high) / 2
            if Int(numbers[middle]) < index { low = middle + 1 } else { high = middle }
        }
        return low
    }

    // MARK: The writer's list

    /// - Throws: `badChangeset` if the writer saw a list of another size (CR-26).
    func checkSize(_ size: Int) throws(SluiceError) {
        let seen = tree.count(.mine)
        guard seen == size else {
            // Withheld: the writer may not see the list.
            throw SluiceError(
                .badChangeset, "A change refers to a list of \(size) elements, and its writer saw another number.",
                value: "\(seen) elements")
        }
    }

    /// Returns the place to insert behind. `nil` for the start.
    func anchor(_ reference: ElementRef?) throws(SluiceError) -> Int? {
        guard let reference else { return nil }
        if let found = try find(reference) { return found.seenAt }
        switch reference {
        case .listed(let index, _), .own(_, let index, _), .seen(let index):
            return tree.select(.mine, max(0, min(index, tree.count(.mine) - 1)))
        }
    }

    // MARK: Naming

    /// The name of a present element. `nil` if the index is out of range.
    func reference(_ index: Int) -> ElementRef? {
        guard let place = tree.select(.present, index) else { return nil }
        let first = Int(elements[place].first)
        let hash = places[first].serverHash ?? ValueHash(values[first])
        let (client, tag) = (places[first].stamp.client, places[first].tag)
        return client == .server ? .listed(Int(tag), hash) : .own(tag, index: index, hash)
    }

    /// The value and clock of a present element. `nil` if the index is out of range.
    func element(_ index: Int) -> (value: Value, clock: PropertyClock)? {
        guard let place = tree.select(.present, index) else { return nil }
        let first = Int(elements[place].first)
        return (values[first], places[first].value?.clock ?? PropertyClock(stamp: .zero))
    }
}
