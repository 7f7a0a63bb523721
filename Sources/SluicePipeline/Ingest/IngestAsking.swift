package import SluiceCore
package import SluicePorts

/// The order of questions to the ingest rules, as a pure state machine. Objects that make the rules fail do not delay the others.
///
/// If a call fails, its objects are asked about in halves until the failing ones are isolated. An object that fails alone twice is
/// rejected with the rules' error. After each failure the rules are probed with no objects. If the probe fails, the rules are at fault,
/// and nothing is decided. A plugin that reports that it could not decide (`pluginFailed`) is trusted. Its object is rejected only if the
/// rules decide about others.
package struct IngestAsking {
    package enum Step: Equatable {
        /// Ask about the objects of this range.
        case ask(Range<Int>)
        /// Ask about no objects, to test if the rules answer.
        case probe
        case done
    }

    /// The verdict on each object, complete once all is done; nil accepts it.
    package private(set) var verdicts: [Result<IngestVerdict, SluiceError>?]
    /// The ranges still to ask about, in order. After a failure all others come first.
    private var open: [Range<Int>] = []
    private var step = Step.done
    /// The error of the previous call, until the probe has passed.
    private var suspicion: (range: Range<Int>, error: SluiceError)?
    /// The objects that failed alone, with their first error.
    private var strikes: [Int: SluiceError] = [:]
    /// The objects that the rules could not decide about. They are asked about once more if others were decided.
    private var undecided: [Int] = []
    /// The objects whose next failure is final.
    private var lastTries: Set<Int> = []
    /// `true` once a call has succeeded.
    private var hasPassed = false

    package init(count: Int) {
        verdicts = Array(repeating: nil, count: count)
        for start in stride(from: 0, to: count, by: Limits.ingestRulesObjects) {
            open.append(start..<min(start + Limits.ingestRulesObjects, count))
        }
    }

    /// Returns the next step.
    /// - Throws: the rules' error if they decided about no object.
    package mutating func next() throws(SluiceError) -> Step {
        if suspicion == nil, open.isEmpty, let first = undecided.first {
            guard hasPassed else { throw strikes[first] ?? SluiceError(.pluginFailed, "The ingest rules gave no verdict.") }
            lastTries.formUnion(undecided)
            open = undecided.map { $0..<$0 + 1 }
            undecided = []
        }
        step = suspicion != nil ? .probe : open.isEmpty ? .done : .ask(open.removeFirst())
        return step
    }

    /// Records the answer to the last step.
    /// - Parameter answers: The verdicts on the objects asked about; nil accepts all of them.
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

    /// Records a failure of the last step.
    /// - Throws: `error` if it does not concern the objects asked about.
    package mutating func failed(_ error: SluiceError) throws(SluiceError) {
        guard case .ask(let range) = step, Self.isOfTheCall(error.code) else { throw error }
        suspicion = (range, error)
    }

    /// Blames the suspected call, since the rules have answered the probe: halves it, or counts a strike.
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

    /// Returns `true` for errors of a call that reached a plugin, was too large for it, or had an answer that cannot be stored.
    /// Other errors mean that no plugin could be asked.
    private static func isOfTheCall(_ code: ErrorCode) -> Bool {
        switch code {
        case .pluginCrashed, .pluginTimeout, .pluginBadAnswer, .pluginRefused, .pluginFailed, .limitsExceeded, .logRecordTooLarge: true
        default: false
        }
    }
}
