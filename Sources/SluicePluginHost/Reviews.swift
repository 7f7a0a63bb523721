import SluiceCore

/// The verdicts on a batch of writes while the plugins of a chain are asked one after the other.
struct WriteReview {
    private(set) var writes: [ProposedWrite]
    private(set) var verdicts: [WriteVerdict]

    init(writes: [ProposedWrite]) {
        self.writes = writes
        verdicts = writes.map { _ in .allow }
    }

    /// Writes in their order, cut into what a plugin is asked about at a time. One that is larger than that is asked about alone.
    static func parts(of writes: [ProposedWrite]) -> [Range<Int>] {
        var parts: [Range<Int>] = []
        var (start, bytes) = (0, 0)
        for (index, write) in writes.enumerated() {
            let size = (write.before?.recordBytes ?? 0) + (write.after?.recordBytes ?? 0)
            if index > start, bytes + size > PluginLimits.writeBytes {
                parts.append(start..<index)
                (start, bytes) = (index, 0)
            }
            bytes += size
        }
        return start < writes.count ? parts + [start..<writes.count] : parts
    }

    /// Those that nobody has denied.
    var undecided: [Int] {
        verdicts.indices.filter {
            switch verdicts[$0] {
            case .allow, .amend: true
            case .deny, .undecided: false
            }
        }
    }

    mutating func apply(_ answers: [WriteVerdict], to indices: [Int]) {
        for (index, answer) in zip(indices, answers) {
            switch answer {
            case .allow: break
            case .deny, .undecided: verdicts[index] = answer
            case .amend(let values):
                var all = values
                if case .amend(let earlier) = verdicts[index] { all = earlier.merging(values) { _, later in later } }
                verdicts[index] = .amend(all)
                let type = writes[index].type
                for (name, value) in values { if let property = type.index(of: name) { writes[index].after?[property] = value } }
            }
        }
    }
}

/// The verdicts on a batch of asymmetric objects while the plugins of a chain are asked one after the other.
struct IngestReview {
    private(set) var objects: ObjectRows
    private(set) var verdicts: [IngestVerdict]

    init(objects: ObjectRows) {
        self.objects = objects
        verdicts = objects.rows.map { _ in .accept }
    }

    /// Whether there is anything to ask the next plugin: objects that are undecided, or none at all, which is asked to see whether a
    /// plugin works.
    var goesOn: Bool { verdicts.isEmpty || !undecided.isEmpty }

    /// Those that are still of their type: neither routed, split, dropped nor rejected.
    var undecided: [Int] {
        verdicts.indices.filter {
            switch verdicts[$0] {
            case .accept, .amend, .transform: true
            case .route, .split, .drop, .reject: false
            }
        }
    }

    mutating func apply(_ answers: [IngestVerdict], to indices: [Int]) {
        for (index, answer) in zip(indices, answers) where answer != .accept {
            switch answer {
            case .amend(let values): amend(index, values)
            case .transform(let values):
                verdicts[index] = answer
                objects.rows[index] = objects.buffer.append(Row(values, of: objects.type))
            case .accept, .route, .split, .drop, .reject: verdicts[index] = answer
            }
        }
    }

    private mutating func amend(_ index: Int, _ values: [String: Value]) {
        for (name, value) in values {
            if let property = objects.type.index(of: name) { objects.buffer.set(objects.rows[index], property, value) }
        }
        switch verdicts[index] {
        case .amend(let earlier): verdicts[index] = .amend(earlier.merging(values) { _, later in later })
        case .transform(let earlier): verdicts[index] = .transform(earlier.merging(values) { _, later in later })
        case .accept, .route, .split, .drop, .reject: verdicts[index] = .amend(values)
        }
    }
}
