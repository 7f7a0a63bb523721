package import SluiceCore

/// Asks the ingest rules about objects so that those they fail at do not keep the others waiting: what to ask next, as a pure state
/// machine.
///
/// Objects whose call fails are asked about in halves, until those that fail alone are found; an object that does so twice is refused
/// with the rules' error. After each failure the rules are asked about nothing at all: when they fail at that too, it is they who are
/// out of order and not the object, and nothing is decided. A plugin that says of itself that it could not decide (`pluginFailed`) is
/// believed, and the object refused only when the same plugin decides about others.
package struct IngestAsking {
    package enum Step: Equatable {
        case ask(Range<Int>)
        /// Ask about no objects: whether the rules answer.
        case probe
        case done
    }

    /// Of each object, once all is done; nil accepts it.
    package private(set) var verdicts: [Result<IngestVerdict, SluiceError>?]
    /// What is still to be asked, in this order: after a failure all others come first.
    private var open: [Range<Int>] = []
    private var step = Step.done
    /// The error that is held against the call before, until the probe has passed.
    private var suspicion: (range: Range<Int>, error: SluiceError)?
    /// Objects that failed alone, with their first error.
    private var strikes: [Int: SluiceError] = [:]
    /// Objects that the rules could not decide about; they are asked once more when they decided about others.
    private var undecided: [Int] = []
    private var lastTries: Set<Int> = []
    private var hasPassed = false

    package init(count: Int) {
        verdicts = Array(repeating: nil, count: count)
        for start in stride(from: 0, to: count, by: Limits.ingestRulesObjects) {
            open.append(start..<min(start + Limits.ingestRulesObjects, count))
        }
    }

    /// - Throws: the rules' error, when they decided about nothing.
    package mutating func next() throws(SluiceError) -> Step {
        if suspicion == nil, open.isEmpty, let first = undecided.first {
            guard hasPassed else { throw strikes[first] ?? SluiceError(.pluginFailed, "The ingest rules decided nothing.") }
            lastTries.formUnion(undecided)
            open = undecided.map { $0..<$0 + 1 }
            undecided = []
        }
        step = suspicion != nil ? .probe : open.isEmpty ? .done : .ask(open.removeFirst())
        return step
    }

    /// - Parameter answers: of the objects asked about; nil accepts all of them.
    package mutating func answered(_ answers: [IngestVerdict]?) {
        switch step {
        case .ask(let range):
            hasPassed = true
            guard let answers else { return }
            for index in range { verdicts[index] = .success(answers[index - range.lowerBound]) }
        case .probe: settle()
        case .done: break
        }
    }

    /// - Throws: the error, when it says nothing about what was asked.
    package mutating func failed(_ error: SluiceError) throws(SluiceError) {
        guard case .ask(let range) = step, Self.isOfTheCall(error.code) else { throw error }
        suspicion = (range, error)
    }

    /// The rules answer, so it is the call that they failed at.
    private mutating func settle() {
        guard let (range, error) = suspicion else { return }
        suspicion = nil
        let first = range.lowerBound
        if range.count > 1 {
            let middle = first + range.count / 2
            open += [first..<middle, middle..<range.upperBound]
        } else if strikes[first] == nil {
            strikes[first] = error
            open.append(range)
        } else if error.code == .pluginFailed, !lastTries.contains(first) {
            undecided.append(first)
        } else {
            verdicts[first] = .failure(strikes[first] ?? error)
        }
    }

    /// Errors of a call that reached a plugin, or was too large for it, or whose answer wants kept what nobody can keep. The others say that
    /// there is no plugin to ask.
    private static func isOfTheCall(_ code: ErrorCode) -> Bool {
        switch code {
        case .pluginCrashed, .pluginTimeout, .pluginBadAnswer, .pluginRefused, .pluginFailed, .limitsExceeded, .logRecordTooLarge: true
        default: false
        }
    }
}
