package import SluiceCore
import SluiceQuery

extension PredicateIndex {
    /// Finds the subscribers whose view a row entered, changed in or left. Each appears once, even if several of its entries match.
    ///
    /// Allocates nothing once `result` has grown to its size.
    /// - Parameters:
    ///   - type: the index of the class. An unknown one matches no subscriber.
    ///   - before: the old row. `nil` for an insert.
    ///   - after: the new row. `nil` for a delete.
    package func match(type: Int, before: RowView?, after: RowView?, into result: inout MatchResult) {
        // Before the guard: a class without subscribers must not keep the matches of the change before.
        result.begin(bound: heads.count)
        guard hasSubscribers(type: type) else { return }
        let state = types[type]
        // Entries without a key may match under any value of the indexed property.
        if state.unkeyed != PredicateIndex.none { visit(state.unkeyed, before, after, &result) }
        guard state.property >= 0 else { return }
        let oldKey = before.map { KeyView($0, state.property) }
        let newKey = after.map { KeyView($0, state.property) }
        // An unchanged key visits its bucket once with both images; a changed key visits two, each with the image that has its key.
        if let oldKey, let newKey, oldKey.isSame(newKey) {
            if let bucket = bucket(of: oldKey, type) { visit(bucket, before, after, &result) }
            return
        }
        // A subscriber under both keys has two entries, so it is marked as repeated and `note` merges its images into one update.
        if let oldKey, let bucket = bucket(of: oldKey, type) { visit(bucket, before, nil, &result) }
        if let newKey, let bucket = bucket(of: newKey, type) { visit(bucket, nil, after, &result) }
    }

    private func bucket(of key: KeyView, _ type: Int) -> UInt32? {
        bucketTable.find(key.hash(type: type, seed: seed)) { isKey($0, key, type) }
    }

    /// `true` if the bucket has this key. Compares bytes, since hashes may collide.
    func isKey(_ index: UInt32, _ key: KeyView, _ type: Int) -> Bool {
        let bucket = buckets[index]
        guard bucket.type == UInt32(type), bucket.key.tag == key.cell.tag, bucket.key.length == key.cell.length else { return false }
        // The value of a cell outside of the arena is in its bits. In the arena the bits are an offset, which differs from row to row.
        if !key.cell.tag.isInArena { return bucket.key.bits == key.cell.bits }
        return pool.words.withUnsafeBytes { raw in
            let start = Int(bucket.keyBlock) * 8
            for index in 0..<key.bytes.count where raw[start + index] != key.bytes[index] { return false }
            return true
        }
    }

    private func visit(_ index: UInt32, _ before: RowView?, _ after: RowView?, _ result: inout MatchResult) {
        let bucket = buckets[index]
        // One pointer serves programs and lists, as both are in the pool. Nothing can move it meanwhile: `match` does not change the index.
        pool.words.withUnsafeBufferPointer { words in
            guard let base = words.baseAddress else { return }
            for slot in stride(from: 0, to: Int(bucket.entries.count), by: 2) {
                let word = base[Int(bucket.entries.block) + slot]
                let code = UInt32(truncatingIfNeeded: word)
                var images: UInt8 = 0
                // Both images are tested, as the pair decides between entered, updated and left.
                if let before, holds(code, word, base, before) { images |= MatchResult.before }
                if let after, holds(code, word, base, after) { images |= MatchResult.after }
                // The second word is read for matches only. Subscribers of other programs cost nothing.
                if images == 0 { continue }
                let place = base[Int(bucket.entries.block) + slot + 1]
                let list = UnsafeBufferPointer(start: base + Int(UInt32(truncatingIfNeeded: place)), count: Int(place >> 32))
                result.note(list, images: images)
            }
        }
    }

    @inline(__always)
    private func holds(_ code: UInt32, _ word: UInt64, _ base: UnsafePointer<UInt64>, _ row: RowView) -> Bool {
        if code != PredicateIndex.none { return Program.run(base + Int(code), row) }
        return trees[nodes[UInt32(word >> 32)].program]?.matches(row) ?? false
    }
}
