import SluiceCore
import SluicePorts

/// The verdicts on a batch of writes while the plugins of a chain are asked in turn.
struct WriteReview {
    private(set) var writes: [ProposedWrite]
    private(set) var verdicts: [WriteVerdict]

    init(writes: [ProposedWrite]) {
        self.writes = writes
        verdicts = writes.map { _ in .allow }
    }

    /// Splits writes, in order, into parts for one call each, of at most `PluginLimits.writeBytes`. A larger write is a part of its own.
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

    /// The indices of the writes that no plugin has denied.
    var undecided: [Int] {
        verdicts.indices.filter {
            switch verdicts[$0] {
            case .allow, .amend: true
            case .deny, .undecided: false
            }
        }
    }

    /// Applies one plugin's verdicts. Later amendments of a property replace earlier ones.
    mutating func apply(_ answers: [WriteVerdict], to indices: [Int]) {
        for (index, answer) in zip(indices, answers) {
            switch answer {
            case .allow: break
            case .deny, .undecided: verdicts[index] = answer
            case .amend(let values):
                var all = values
                if case .amend(let earlier) = verdicts[index] { all = earlier.merging(values) { _, later in later } }
                verdicts[index] = .amend(all)
                // The next plugin must see the amended image.
                let type = writes[index].type
                for (name, value) in values { if let property = type.index(of: name) { writes[index].after?[property] = value } }
            }
        }
    }
}

/// The verdicts on a batch of asymmetric objects while the plugins of a chain are asked in turn.
struct IngestReview {
    private(set) var objects: ObjectRows
    private(set) var verdicts: [IngestVerdict]

    init(objects: ObjectRows) {
        self.objects = objects
        verdicts = objects.rows.map { _ in .accept }
    }

    /// `true` if the next plugin must be asked. An empty batch is passed to every plugin, because it tests if they work.
    var goesOn: Bool { verdicts.isEmpty || !undecided.isEmpty }

    /// The indices of the objects that keep their class: neither routed, split, dropped nor rejected.
    var undecided: [Int] {
        verdicts.indices.filter {
            switch verdicts[$0] {
            case .accept, .amend, .transform: true
            case .route, .split, .drop, .reject: false
            }
        }
    }

    /// Applies one plugin's verdicts.
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
        // Merge into the earlier verdict, which a later plugin may not discard.
        switch verdicts[index] {
        case .amend(let earlier): verdicts[index] = .amend(earlier.merging(values) { _, later in later })
        case .transform(let earlier): verdicts[index] = .transform(earlier.merging(values) { _, later in later })
        case .accept, .route, .split, .drop, .reject: verdicts[index] = .amend(values)
        }
    }
}
