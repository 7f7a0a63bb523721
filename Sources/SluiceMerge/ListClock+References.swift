import SluiceCore

/// The search for the element that a writer means. It reads the list from the writer's point of view only. So changes of others that
/// arrived earlier make no difference.
extension ListClock {
    /// The location of an element: its first place, and the place where its writer saw it.
    struct Found {
        var first: Int
        var seenAt: Int
    }

    /// - Parameter values: The current values of the list.
    /// - Returns: `nil` if the list has no such element and no record of one.
    /// - Throws: `badChangeset` if the index is outside the list that the writer saw.
    func find(_ reference: ElementRef, _ values: [Value], by writer: WriteContext) throws(SluiceError) -> Found? {
        let mine = Eyes.writer(writer.base, writer.stamp.client)
        switch reference {
        case .listed(let index, let hash):
            let listed = elements(.base(writer.base))
            func was(_ element: Element, now: Value?) -> Bool? {
                places[element.first].was(hash, now: now, to: .base(writer.base))
            }
            if listed.indices.contains(index) {
                let present = presentIndex(of: listed[index].first)
                let now = present.flatMap { values.indices.contains($0) ? values[$0] : nil }
                if was(listed[index], now: now) != false { return found(listed[index], mine) }
            }
            // The list that the writer saw is unknown. Take the nearest element with the same value, or with that first value.
            let present = presentValues(values)
            var like = listed.indices.filter { was(listed[$0], now: present[listed[$0].first]) == true }
            if like.isEmpty { like = listed.indices.filter { places[listed[$0].first].original?.hash == hash } }
            return like.min { abs($0 - index) < abs($1 - index) }.map { found(listed[$0], mine) }
        case .own(let tag, let index, let hash):
            if let first = self.index(of: ID(client: writer.stamp.client, tag: tag)), places[first].element == nil {
                return Found(first: first, seenAt: place(of: first, mine) ?? first)
            }
            return try find(.listed(index, hash), values, by: writer)
        case .seen(let index):
            let seen = elements(mine)
            guard seen.indices.contains(index) else {
                throw SluiceError(.badChangeset, "A change names element \(index) of a list of \(seen.count).")
            }
            return Found(first: seen[index].first, seenAt: seen[index].place)
        }
    }

    private func found(_ element: Element, _ mine: Eyes) -> Found {
        Found(first: element.first, seenAt: place(of: element.first, mine) ?? element.place)
    }

    /// Returns the values of the present elements by first place.
    private func presentValues(_ values: [Value]) -> [Int: Value] {
        Dictionary(zip(elements(.present).map(\.first), values), uniquingKeysWith: { first, _ in first })
    }

    /// - Throws: `badChangeset` if the writer saw a list of another size (CR-26).
    func checkSize(_ size: Int, by writer: WriteContext) throws(SluiceError) {
        let seen = elements(.writer(writer.base, writer.stamp.client)).count
        guard seen == size else {
            throw SluiceError(.badChangeset, "A change was made to a list of \(size) elements; its writer saw \(seen).")
        }
    }

    /// Returns the latest visible place of the element with this first place.
    private func place(of first: Int, _ eyes: Eyes) -> Int? {
        let id = places[first].id
        return places.indices.filter { places[$0].first == id && eyes.sees(places[$0].lsn, by: places[$0].stamp.client) }
            .max { (places[$0].stamp, places[$0].tag) < (places[$1].stamp, places[$1].tag) }
    }

    /// Returns the current index of the element in the list. `nil` if it is removed.
    func presentIndex(of first: Int) -> Int? {
        places[first].removals.isEmpty ? elements(.present).firstIndex { $0.first == first } : nil
    }

    /// Returns the place to insert behind. `nil` for the start.
    func anchor(_ reference: ElementRef?, _ values: [Value], by writer: WriteContext) throws(SluiceError) -> Int? {
        guard let reference else { return nil }
        if let found = try find(reference, values, by: writer) { return found.seenAt }
        let seen = elements(.writer(writer.base, writer.stamp.client))
        switch reference {
        case .listed(let index, _), .own(_, let index, _), .seen(let index):
            return seen.isEmpty ? nil : seen[min(index, seen.count - 1)].place
        }
    }
}

extension ListClock.Place {
    /// `true` if the writer saw the element with this value. `nil` if that is unknown.
    /// - Parameter now: The current value. `nil` if the element is removed.
    fileprivate func was(_ hash: ValueHash, now: Value?, to eyes: ListClock.Eyes) -> Bool? {
        // Only the first and the last value are known.
        if let original, !eyes.sees(original.until, by: .server) { return original.hash == hash }
        if let value, !eyes.sees(value.lsn, by: .server) { return nil }
        return now.map { ValueHash($0) == hash }
    }
}
