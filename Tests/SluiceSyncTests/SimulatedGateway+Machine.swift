import SluiceCore
import SluiceWire

@testable import SluicePipeline

/// A bootstrap that the session's machine has started and that has not been made.
struct WantedBootstrap {
    /// The machine's number of the task.
    var number: UInt64
    var version: UInt64
    var stores: Set<String>
}

/// The gateway's own session machine decides on the order of messages, on bootstraps, acknowledgements and barriers. Its effects are
/// performed here, in memory.
extension SimulatedGateway {
    /// Feeds the machine of a session, and performs its effects.
    /// - Throws: the error that ends the session.
    mutating func feed(_ id: UInt64, _ input: SessionInput) throws(SluiceError) {
        for effect in sessions[id]?.machine.handle(input) ?? [] {
            switch effect {
            case .bootstrap(let number, let view):
                let queries = sessions[id]?.machine.views.subscriptions.message.queries ?? []
                sessions[id]?.wanted = WantedBootstrap(number: number, version: view.version, stores: Set(queries.map(\.text)))
            case .cancelWork:
                // A bootstrap that is not being made ends at once.
                sessions[id]?.wanted = nil
                if let number = sessions[id]?.machine.views.number { try feed(id, .workEnded(number: number, .done, isStale: false)) }
            // One flush at the end of the message covers all of its changesets.
            case .flush: break
            case .answerBarriers: answerBarriers(id)
            case .end(let error): throw error
            case .takeBatches, .search, .askRules: violations.append("an effect that no input asks for: \(effect)")
            }
        }
    }

    /// Records that a bootstrap is complete.
    mutating func finish(_ wanted: WantedBootstrap, _ id: UInt64) {
        let view = View(version: wanted.version, types: [], partitions: [])
        sessions[id]?.wanted = nil
        for input: SessionInput in [
            .ending(number: wanted.number, view), .live(number: wanted.number, view),
            .workEnded(number: wanted.number, .done, isStale: false),
        ] {
            if sessions[id]?.machine.handle(input).isEmpty == false { violations.append("a complete bootstrap has effects") }
        }
        if sessions[id]?.isClosed == false, sessions[id]?.machine.views.live.version != wanted.version {
            violations.append("version \(wanted.version) is not live after its bootstrap")
        }
    }

    /// Acknowledges the committed changesets.
    mutating func acknowledge(_ futile: [PBFutileWrite], _ id: UInt64) {
        let lsn = lsn
        while case let durable = sessions[id]?.machine.nextFlush() ?? [], let last = durable.last?.changeset {
            sessions[id]?.machine.compensationsSent()
            send(
                id,
                .uploadAck(
                    make(PBUploadAck()) {
                        $0.number = last
                        $0.lsn = lsn
                        $0.futile = futile
                    }))
        }
    }

    private mutating func answerBarriers(_ id: UInt64) {
        while case let ids = sessions[id]?.machine.nextBarriers() ?? [], !ids.isEmpty {
            let since = sessions[id]?.machine.views.generation ?? 0
            bootstrapUntilDone(id)
            if sessions[id]?.machine.views.isSettled(since: since, isStale: false) == false {
                violations.append("the views are not settled after their bootstraps")
            }
            if has(.stall, 30) { continue }
            for barrier in ids { send(id, .markReached(make(PBMarkReached()) { $0.id = barrier })) }
        }
    }
}
