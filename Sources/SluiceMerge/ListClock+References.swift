import SluiceCore

/// Finding what a writer meant. All of it looks at the list with the writer's eyes only, so that it does not matter what of
/// others arrived before.
extension ListClock {
    /// Where an element is: its first place, and the one where its writer saw it.
    struct Found {
        var first: Int
        var seenAt: Int
    }

    /// - Parameter values: what the list holds now.
    /// - Returns: nil when there is no such element, and never was as far as is known.
    /// - Throws: `badChangeset` for an index that the writer cannot have seen.
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
            // The list that the writer saw is not known any more: the same value, nearest to where it was; or an element that had
            // it before others changed it.
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

    /// The values of the elements that are there, by first place.
    private func presentValues(_ values: [Value]) -> [Int: Value] {
        Dictionary(zip(elements(.present).map(\.first), values), uniquingKeysWith: { first, _ in first })
    }

    /// - Throws: `badChangeset` when the writer cannot have seen a list of this size (CR-26).
    func checkSize(_ size: Int, by writer: WriteContext) throws(SluiceError) {
        let seen = elements(.writer(writer.base, writer.stamp.client)).count
        guard seen == size else {
            throw SluiceError(.badChangeset, "A change was made to a list of \(size) elements; its writer saw \(seen).")
        }
    }

    /// Where the element with this first place stands.
    private func place(of first: Int, _ eyes: Eyes) -> Int? {
        let id = places[first].id
        return places.indices.filter { places[$0].first == id && eyes.sees(places[$0].lsn, by: places[$0].stamp.client) }
            .max { (places[$0].stamp, places[$0].tag) < (places[$1].stamp, places[$1].tag) }
    }

    /// Where the element is in the list now; nil when it was removed.
    func presentIndex(of first: Int) -> Int? {
        places[first].removals.isEmpty ? elements(.present).firstIndex { $0.first == first } : nil
    }

    /// The place to insert behind; nil for the start.
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
    /// Whether the element had a value for a writer; nil when that is not known.
    /// - Parameter now: nil when it was removed.
    fileprivate func was(_ hash: ValueHash, now: Value?, to eyes: ListClock.Eyes) -> Bool? {
        // Only the first and the last value are known.
        if let original, !eyes.sees(original.until, by: .server) { return original.hash == hash }
        if let value, !eyes.sees(value.lsn, by: .server) { return nil }
        return now.map { ValueHash($0) == hash }
    }
}
