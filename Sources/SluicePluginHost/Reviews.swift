import SluiceCore

/// The verdicts on a batch of writes while the plugins of a chain are asked one after the other.
struct WriteReview {
    private(set) var writes: [ProposedWrite]
    private(set) var verdicts: [WriteVerdict]

    init(writes: [ProposedWrite]) {
        self.writes = writes
        verdicts = writes.map { _ in .allow }
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
    private(set) var objects: [[String: Value]]
    private(set) var verdicts: [IngestVerdict]

    init(objects: [[String: Value]]) {
        self.objects = objects
        verdicts = objects.map { _ in .accept }
    }

    /// Those that are still of their type: neither routed, split, dropped nor rejected.
    var undecided: [Int] {
        verdicts.indices.filter {
            switch verdicts[$0] {
            case .accept, .transform: true
            case .route, .split, .drop, .reject: false
            }
        }
    }

    mutating func apply(_ answers: [IngestVerdict], to indices: [Int]) {
        for (index, answer) in zip(indices, answers) where answer != .accept {
            verdicts[index] = answer
            if case .transform(let values) = answer { objects[index] = values }
        }
    }
}
