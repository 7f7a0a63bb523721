import SluiceCore
package import SluiceQuery

extension PredicateIndex {
    /// Adds entries of a subscriber to those it already has.
    ///
    /// Ignores a type that the index does not know, as it cannot have changes.
    /// - Precondition: the subscriber is below 2^31.
    package mutating func add(subscriber: UInt32, type: Int, entries: [IndexEntry]) {
        precondition(subscriber < 1 << 31, "subscriber \(subscriber) is not below 2^31")
        guard types.indices.contains(type) else { return }
        if heads.count <= Int(subscriber) {
            heads.append(contentsOf: repeatElement(PredicateIndex.none, count: Int(subscriber) + 1 - heads.count))
        }
        // Earlier single entries are marked too: from now on the subscriber can match more than once per change.
        let isRepeated = markRepeated(subscriber, type) || entries.count > 1
        for entry in entries {
            let bucket = bucket(for: entry.key, type)
            let node = node(bucket, program(entry.program))
            join(subscriber, node, type, isRepeated)
        }
    }

    /// Marks a subscriber's entries of a type as several.
    /// - Returns: `true` if it has any.
    private mutating func markRepeated(_ subscriber: UInt32, _ type: Int) -> Bool {
        var hasAny = false
        var current = heads[Int(subscriber)]
        while current != PredicateIndex.none {
            let member = members[current]
            if Int(member.type) == type {
                hasAny = true
                pool[Int(member.position), of: subscribers(of: nodes[member.node])] |= PredicateIndex.isRepeated
            }
            current = member.next
        }
        return hasAny
    }

    private mutating func join(_ subscriber: UInt32, _ node: UInt32, _ type: Int, _ isRepeated: Bool) {
        var list = subscribers(of: nodes[node])
        let member = members.insert(
            Member(node: node, position: list.count, next: heads[Int(subscriber)], type: UInt32(type)))
        heads[Int(subscriber)] = member
        pool.append(UInt64(subscriber) | (isRepeated ? PredicateIndex.isRepeated : 0) | UInt64(member) << 32, to: &list)
        setSubscribers(list, of: node)
        types[type].members += 1
    }

    /// Removes all entries of a subscriber.
    package mutating func remove(subscriber: UInt32) { remove(subscriber, type: nil) }

    /// Removes a subscriber's entries of one type.
    package mutating func remove(subscriber: UInt32, type: Int) { remove(subscriber, type: type) }

    private mutating func remove(_ subscriber: UInt32, type: Int?) {
        guard Int(subscriber) < heads.count else { return }
        var kept = PredicateIndex.none
        var current = heads[Int(subscriber)]
        while current != PredicateIndex.none {
            let member = members[current]
            // `member` is a copy: the walk continues by its old `next`, which is rewritten if the entry stays.
            if let type, Int(member.type) != type {
                // The entries that stay are linked anew, in reverse order.
                members[current].next = kept
                kept = current
            } else {
                leave(member)
                members.remove(current)
            }
            current = member.next
        }
        heads[Int(subscriber)] = kept
    }

    /// Removes a member from its node. The node's last member takes its place.
    private mutating func leave(_ member: Member) {
        types[Int(member.type)].members -= 1
        var list = subscribers(of: nodes[member.node])
        let moved = pool.remove(at: Int(member.position), of: &list)
        // If the removed word was the last, `moved` is that word, and this write goes to the record that the caller removes.
        members[UInt32(moved >> 32)].position = member.position
        setSubscribers(list, of: member.node)
        // After `setSubscribers`: discarding reads the list through the bucket to release its block.
        if list.count == 0 { discard(member.node) }
    }

    // MARK: Nodes

    private func subscribers(of node: Node) -> WordList {
        let place = pool[2 * Int(node.slot) + 1, of: buckets[node.bucket].entries]
        return WordList(block: UInt32(truncatingIfNeeded: place), count: UInt32(place >> 32), capacity: node.capacity)
    }

    private mutating func setSubscribers(_ list: WordList, of index: UInt32) {
        nodes[index].capacity = list.capacity
        let node = nodes[index]
        pool[2 * Int(node.slot) + 1, of: buckets[node.bucket].entries] = UInt64(list.block) | UInt64(list.count) << 32
    }

    private func nodeHash(_ bucket: UInt32, _ program: UInt32) -> UInt64 {
        Hashing.mix(UInt64(bucket) << 32 | UInt64(program), seed)
    }

    private mutating func node(_ bucket: UInt32, _ program: UInt32) -> UInt32 {
        let hash = nodeHash(bucket, program)
        if let node = nodeTable.find(hash, { nodes[$0].bucket == bucket && nodes[$0].program == program }) { return node }
        // References count nodes, not subscribers. A program goes with the last key that uses it.
        programs[program].references += 1
        var entries = buckets[bucket].entries
        let node = nodes.insert(Node(bucket: bucket, program: program, slot: entries.count / 2))
        pool.append(UInt64(programs[program].block) | UInt64(node) << 32, to: &entries)
        // The second word, of the subscribers, is filled in by `setSubscribers`.
        pool.append(0, to: &entries)
        buckets[bucket].entries = entries
        nodeTable.insert(hash, node)
        return node
    }

    private mutating func discard(_ index: UInt32) {
        let node = nodes[index]
        nodeTable.remove(nodeHash(node.bucket, node.program), index)
        // Before the bucket's two words are removed, as the second one has the place of the list.
        pool.release(subscribers(of: node))
        nodes.remove(index)
        release(node.program)
        var bucket = buckets[node.bucket]
        // The last entry's two words replace the two removed, the second word first.
        _ = pool.remove(at: 2 * Int(node.slot) + 1, of: &bucket.entries)
        let moved = pool.remove(at: 2 * Int(node.slot), of: &bucket.entries)
        nodes[UInt32(moved >> 32)].slot = node.slot
        buckets[node.bucket] = bucket
        if bucket.entries.count == 0 { discard(bucket: node.bucket, bucket) }
    }

    // MARK: Programs

    private mutating func program(_ program: Program) -> UInt32 {
        guard program.isFlat else { return tree(program) }
        let hash = Hashing.hash(program.words, seed: seed)
        let found = programTable.find(hash) {
            let record = programs[$0]
            return record.block != PredicateIndex.none && Int(record.wordCount) == program.words.count
                && pool.holds(program.words, at: record.block)
        }
        if let found { return found }
        let record = ProgramRecord(
            hash: hash, block: pool.store(program.words), wordCount: UInt32(program.words.count), references: 0)
        let index = programs.insert(record)
        programTable.insert(hash, index)
        return index
    }

    private mutating func tree(_ program: Program) -> UInt32 {
        // Linear and without a table: only callers outside of subscriptions have such programs.
        if let found = trees.first(where: { $0.value == program }) { return found.key }
        let index = programs.insert(ProgramRecord(hash: 0, block: PredicateIndex.none, wordCount: 0, references: 0))
        trees[index] = program
        return index
    }

    private mutating func release(_ index: UInt32) {
        programs[index].references -= 1
        let record = programs[index]
        guard record.references == 0 else { return }
        if record.block == PredicateIndex.none {
            trees[index] = nil
        } else {
            programTable.remove(record.hash, index)
            pool.release(record.block, Int(record.wordCount))
        }
        programs.remove(index)
    }

    // MARK: Buckets

    private mutating func bucket(for key: Value?, _ type: Int) -> UInt32 {
        guard let key else {
            if types[type].unkeyed == PredicateIndex.none {
                types[type].unkeyed = buckets.insert(
                    Bucket(type: UInt32(type), hash: 0, key: .absent, keyBlock: PredicateIndex.none))
            }
            return types[type].unkeyed
        }
        var buffer = RowBuffer()
        let row = buffer.append(Row([key]))
        return buffer.withView(row) { bucket(for: KeyView($0, 0), type) }
    }

    private mutating func bucket(for key: KeyView, _ type: Int) -> UInt32 {
        let hash = key.hash(type: type, seed: seed)
        if let bucket = bucketTable.find(hash, { isKey($0, key, type) }) { return bucket }
        var cell = key.cell
        var keyBlock = PredicateIndex.none
        if cell.tag.isInArena {
            cell.bits = 0
            keyBlock = pool.store(PredicateIndex.packed(key.bytes))
        }
        let bucket = buckets.insert(
            Bucket(type: UInt32(type), hash: hash, key: cell, keyBlock: keyBlock))
        bucketTable.insert(hash, bucket)
        return bucket
    }

    /// Packs bytes into words, in memory order.
    private static func packed(_ bytes: UnsafeBufferPointer<UInt8>) -> [UInt64] {
        var words = [UInt64](repeating: 0, count: max(1, (bytes.count + 7) / 8))
        words.withUnsafeMutableBytes { $0.copyBytes(from: bytes) }
        return words
    }

    private mutating func discard(bucket index: UInt32, _ bucket: Bucket) {
        pool.release(bucket.entries)
        if bucket.key.tag == .absent {
            types[Int(bucket.type)].unkeyed = PredicateIndex.none
        } else {
            bucketTable.remove(bucket.hash, index)
            if bucket.keyBlock != PredicateIndex.none { pool.release(bucket.keyBlock, max(1, (Int(bucket.key.length) + 7) / 8)) }
        }
        buckets.remove(index)
    }
}
