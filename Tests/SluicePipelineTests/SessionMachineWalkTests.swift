import SluiceCore
import SluicePorts
import SluiceWire
import TestSupport
import Testing

@testable import SluicePipeline

/// A shell of the session machine that does everything in any order, and checks after each step what always holds.
private struct Walk {
    var random: SplitMix64
    var machine = SessionMachine()
    /// The first thing that did not hold.
    var fault: String?
    var steps: [String] = []

    /// The task on the view.
    var work: (number: UInt64, view: View?, isCancelled: Bool)?
    var asking: UInt64?
    /// The question that the asking task has asked and that has no answer yet.
    var question: UInt64?
    /// The changesets of the flush under way; nil if none is.
    var flush: [Acknowledgement]?
    var (isTaking, isAnswering) = (false, false)
    var unsent: Set<UInt64> = []
    var changeset: UInt64 = 0
    var version: UInt64 = 0
    var hasLived = false
    var errors = 0
    /// The version of the view that is to be live in the end.
    var wanted: UInt64 = 0
    /// `true` while a review has stopped the view that was to be live.
    var isReplacing = false

    init(seed: UInt64) {
        random = SplitMix64(seed: seed)
        feed(.received(.hello))
        feed(.opened(changeset: 0))
    }

    mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

    mutating func expect(_ holds: Bool, _ what: String) { if !holds, fault == nil { fault = what } }

    /// Feeds the machine, and performs the effects as far as tasks begin and end.
    mutating func feed(_ input: SessionInput) {
        let wasClosed = machine.isClosed
        let effects = machine.handle(input)
        for effect in effects {
            switch effect {
            case .flush:
                expect(flush == nil, "two flushes")
                flush = machine.nextFlush()
            case .takeBatches:
                expect(!isTaking, "two takers")
                isTaking = true
            case .answerBarriers:
                expect(!isAnswering, "two tasks answer barriers")
                isAnswering = true
            case .bootstrap(let number, let view): begin(number, view)
            case .search(let number): begin(number, nil)
            case .cancelWork: work?.isCancelled = true
            case .askRules(let number, _): asking = number
            case .end: errors += 1
            }
        }
        expect(!wasClosed || effects.allSatisfy { if case .cancelWork = $0 { true } else { false } }, "a closed session begins something")
        check()
    }

    private mutating func begin(_ number: UInt64, _ view: View?) {
        expect(work == nil, "two tasks on the view")
        expect(!machine.isAsking, "a view is sent while the rules are unavailable")
        work = (number, view, false)
    }

    private mutating func check() {
        let told = machine.uploads.told
        expect(unsent.allSatisfy { told < $0 }, "told \(told), unsent \(unsent.sorted())")
        expect(!unsent.isEmpty || told == machine.uploads.committed, "told \(told) of \(machine.uploads.committed)")
        expect(errors <= 1, "\(errors) errors")
        expect(machine.views.isInStep == hasLived, "in step without a view")
        if machine.isAsking { expect(work?.isCancelled != false, "a task on the view runs while the rules are unavailable") }
        expect(machine.views.number == work?.number, "the task is \(machine.views.number ?? 0)")
        if !hasLived {
            machine.deferAnnouncement(of: AwaitedPosition(lsn: LSN(rawValue: told), isCommit: false))
            expect(machine.takeDeferred() == nil, "a position before the first view")
        }
        if machine.phase == .open, !machine.isAsking, work == nil, hasLived, !isReplacing {
            expect(machine.views.live.version == wanted, "version \(machine.views.live.version) is live, not \(wanted)")
        }
    }

    // MARK: Steps

    mutating func step() {
        let number = below(100)
        steps.append("\(number)")
        switch number {
        case 0..<15: subscribe()
        case 15..<30: commit()
        case 30..<42: endFlush()
        case 42..<48: ingest()
        case 48..<54: barrier()
        case 54..<58: feed(.rulesChanged)
        case 58..<62: review()
        case 62..<66: feed(.rulesFailed(SluiceError(.pluginFailed, "away")))
        case 66..<78: ask()
        case 78..<81: feed(.membersChanged(isStale: true))
        case 81..<99: progress()
        default: end()
        }
    }

    private mutating func subscribe() {
        version += 1
        feed(.requested(version: version))
        guard machine.isOpen else { return }
        // Also while the rules are unavailable: the view may have been built before.
        if !machine.isAsking { wanted = version }
        feed(.accepted(.version(version), .version(version)))
    }

    private mutating func commit() {
        guard machine.isOpen else { return }
        if changeset > 0, below(4) == 0 {
            return feed(.committed(Acknowledgement(changeset: changeset, lsn: .zero, isCommit: false)))
        }
        changeset += 1
        expect((try? machine.take(changeset: changeset)) == true, "changeset \(changeset) is not new")
        let isRejected = below(3) == 0
        if isRejected { unsent.insert(changeset) }
        feed(.committed(Acknowledgement(changeset: changeset, lsn: .zero, isCommit: true, compensation: isRejected ? [1] : nil)))
    }

    private mutating func endFlush() {
        guard let covered = flush else { return }
        guard machine.isOpen else {
            expect(machine.nextFlush().isEmpty, "a closed session flushes")
            flush = nil
            return
        }
        for next in covered where next.compensation != nil { unsent.remove(next.changeset) }
        machine.compensationsSent()
        let next = machine.nextFlush()
        flush = next.isEmpty ? nil : next
        check()
    }

    private mutating func ingest() {
        if below(2) == 0 { return feed(.ingest(WaitingBatch(number: 1, objects: []))) }
        guard isTaking else { return }
        machine.batchAcknowledged()
        guard machine.ingest.batches.isEmpty || machine.isClosed else { return }
        machine.batchesEnded()
        isTaking = false
    }

    private mutating func barrier() {
        if below(2) == 0 { return feed(.barrier(1)) }
        if isAnswering, machine.nextBarriers().isEmpty { isAnswering = false }
    }

    /// A review that finds another view stops the live one first.
    private mutating func review() {
        guard machine.isOpen, !machine.isAsking, version > 0 else { return }
        version += 1
        isReplacing = true
        feed(.stop)
        while work != nil { progress() }
        isReplacing = false
        if machine.phase == .open, !machine.isAsking { wanted = version }
        feed(.replace(.version(version)))
    }

    private mutating func ask() {
        guard let asking else { return }
        guard machine.rules.availability == .unavailable(asking) else {
            self.asking = nil
            return
        }
        guard machine.isOpen else {
            feed(.askingEnded(number: asking))
            return
        }
        // As the session does: it stops the task before it asks.
        while work != nil { progress() }
        guard machine.isAsking, let asked = question else {
            question = machine.rules.question
            return
        }
        question = nil
        let isNewest = asked == machine.rules.question
        if isNewest { wanted = version }
        feed(.answered(question: asked, .version(version)))
        expect(machine.isAsking != isNewest, "an answer to question \(asked) of \(machine.rules.question)")
    }

    /// The next thing that happens to the task on the view.
    private mutating func progress() {
        guard let (number, view, isCancelled) = work else { return }
        switch (below(4), view) {
        case (0, let view?): feed(.ending(number: number, view))
        case (1, let view?) where !isCancelled || below(4) == 0:
            hasLived = true
            feed(.live(number: number, view))
            endWork(number, .done)
        case (2, .some):
            feed(.bootstrapFailed(number: number))
            expect(machine.views.known.version == machine.views.live.version, "a failed view judges writes")
            // Seldom: it ends the session.
            if isCancelled || below(10) == 0 { endWork(number, .bootstrapFailed(SluiceError(.resync, "again"))) }
        case (1, nil): endWork(number, .searched(machine.beginReading()))
        case (2, nil) where isCancelled || below(4) == 0: endWork(number, .searchFailed(SluiceError(.pluginFailed, "away")))
        case (3, _) where isCancelled: endWork(number, .done)
        default: break
        }
    }

    private mutating func endWork(_ number: UInt64, _ outcome: WorkOutcome) {
        let (before, wasCancelled) = (errors, work?.isCancelled == true)
        work = nil
        feed(.workEnded(number: number, outcome, isStale: below(4) == 0))
        expect(!wasCancelled || errors == before, "the error of a superseded task reaches the client")
    }

    private mutating func end() {
        guard below(5) == 0 else { return }
        feed(below(2) == 0 ? .failed(SluiceError(.timeout, "late")) : .disconnected)
    }
}

@Suite struct `A walk through the session machine` {
    /// Reproduces by its seed.
    @Test func `finds what always holds at each step`() {
        for _ in 0..<400 {
            let seed = UInt64.random(in: .min ... .max)
            var walk = Walk(seed: seed)
            for _ in 0..<300 where walk.fault == nil { walk.step() }
            #expect(walk.fault == nil, "seed \(seed), steps \(walk.steps.joined(separator: " "))")
        }
    }

    /// So that the walk above is one: its steps lead everywhere.
    @Test func `comes to live views, to unavailable rules and to the end`() {
        var (lived, asked, ended) = (false, false, false)
        for seed in UInt64(1)...200 {
            var walk = Walk(seed: seed)
            for _ in 0..<300 {
                walk.step()
                lived = lived || walk.machine.views.live.version > 1
                asked = asked || walk.machine.isAsking
                ended = ended || walk.errors > 0
            }
        }
        #expect(lived && asked && ended)
    }
}
