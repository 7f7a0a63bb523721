import DequeModule
import SluiceCore
import SluicePorts
import Synchronization

/// The way of a session's events to the machine.
final class EventDelivery: Sendable {
    /// Delivers events, and awaits what they need.
    let task = OnDemand()
    /// `true` while the thread of the socket is asked to look for events.
    private let isAsked = Atomic<Bool>(false)

    /// - Returns: `false` if the thread is asked already.
    func ask() -> Bool { !isAsked.exchange(true, ordering: .acquiringAndReleasing) }

    /// Precedes the look for events: those that come later need another one.
    func begin() { isAsked.store(false, ordering: .releasing) }
}

// The events of the views, on their way to the machine.
extension RealmConnection {
    /// The messages to the client that the thread of the socket makes at a time, and the events in each. A task goes on, as other sockets
    /// wait.
    private static let (messagesAtOnce, eventsAtOnce) = (4, 16)

    // MARK: Without waiting

    /// Returns a call that lets the thread of the socket deliver the events that the views have. It returns at once.
    nonisolated func wake(_ id: RealmSessionID, _ delivery: EventDelivery) -> @Sendable () -> Void {
        // Made once. One for each change would be made by the thread of the fan-out and freed by that of the socket.
        let deliver: @Sendable () -> Void = {
            delivery.begin()
            if !(self.enterIfIdle({ $0.deliverNow(id) }) ?? false) { delivery.task.ask() }
        }
        return {
            guard delivery.ask(), !self.sink.perform(deliver) else { return }
            delivery.begin()
            delivery.task.ask()
        }
    }

    /// Delivers the events of a session until one must wait.
    /// - Returns: `false` if the session's task must go on.
    private func deliverNow(_ id: RealmSessionID) -> Bool {
        guard let session = sessions[id], let view = session.view, !machine.isClosed else { return true }
        guard session.isDelivering, !session.delivery.task.isWorking else { return false }
        do {
            return try deliverNow(id, session, view)
        } catch {
            start(id) { await self.fail(id, error) }
            return true
        }
    }

    private func deliverNow(_ id: RealmSessionID, _ session: FileSession, _ view: any RealmClientView) throws -> Bool {
        for _ in 0..<Self.messagesAtOnce {
            guard performing == nil, sink.bufferedBytes < Limits.outboxBytes else { return false }
            let (changes, next) = try collect(id, view)
            guard try takeNow(changes, id, session) else {
                session.held = [.changes(changes)]
                if case .event(let event) = next { session.held.append(event) }
                return false
            }
            switch next {
            case .none: return true
            case .event(.advanced(let version)) where performing == nil:
                advance(.advanced(id, version))
                session.reach(version)
            case .event(let event):
                session.held = [event]
                return false
            case .later: return false
            }
        }
        return false
    }

    /// Returns the changes that the views have, which are one message for the client, and what follows them.
    private func collect(_ id: RealmSessionID, _ view: any RealmClientView) throws -> ([OutgoingEntry], RealmReadyEvent) {
        var entries: [OutgoingEntry] = []
        for index in 0..<Self.eventsAtOnce {
            let next = try view.nextNow(isTaken: index == 0)
            if case .event(let event) = next { note(event, id) }
            guard case .event(.changes(let changes)) = next else { return (entries, next) }
            if index == 0 { entries = changes } else { entries += changes }
        }
        return (entries, .later)
    }

    /// Hands changes to the machine unless they must wait.
    private func takeNow(_ entries: [OutgoingEntry], _ id: RealmSessionID, _ session: FileSession) throws -> Bool {
        guard let last = entries.last?.entry, let file = session.file else { return true }
        // As in `append`.
        let known = session.acknowledged.count
        guard !session.isIntegrating, entries.allSatisfy({ $0.entry.compensation == nil && $0.entry.clientVersion <= known }),
            try services.store.appendLater(entries.map(\.entry), to: file)
        else { return false }
        advance(.append(id, entries))
        session.reach(last.serverVersion)
        return true
    }

    // MARK: The task of a session

    /// Delivers the events that the views have. An error ends the session.
    func deliver(_ id: RealmSessionID) async {
        await performed()
        do {
            while let event = try await nextEvent(id) { try await take(event, id) }
        } catch {
            await fail(id, error)
        }
    }

    /// Returns the next event of the views; nil if there is none yet, or the session is over.
    private func nextEvent(_ id: RealmSessionID) async throws -> RealmViewEvent? {
        guard let session = sessions[id], let view = session.view else { return nil }
        let held = session.held.popFirst()
        let next = if let held { held } else { try await view.next() }
        guard let event = next, sessions[id] != nil, !machine.isClosed else { return nil }
        if held == nil { note(event, id) }
        // A client that does not read stops its views. The socket limits the time.
        if sink.bufferedBytes >= Limits.outboxBytes {
            sessions[id]?.isDraining = true
            await sink.drained(below: Limits.outboxBytes)
            sessions[id]?.isDraining = false
        }
        return event
    }

    private func note(_ event: RealmViewEvent, _ id: RealmSessionID) {
        sessions[id]?.events &+= 1
        switch event {
        case .part(let part):
            sessions[id]?.parts &+= 1
            endDeadline(of: part.queryVersion, id)
        case .refused(let version, _): endDeadline(of: version, id)
        case .changes, .advanced, .integrated, .permissionsChanged: break
        }
    }

    private func take(_ event: RealmViewEvent, _ id: RealmSessionID) async throws {
        guard let session = sessions[id] else { return }
        switch event {
        case .part(let part):
            // The part covers all entries up to its version, so uploads up to it need no other entry.
            session.settled.reach(part.serverVersion)
            try await untilAcknowledged(part.clientVersion, id)
            await submit(.bootstrap(id, part))
            if part.isLast { session.reach(part.serverVersion) }
            if !part.isLast, let session = sessions[id], session.building == nil { awaitPart(of: part.queryVersion, id) }
        case .refused(let version, let message): await submit(.queryFailed(id, queryVersion: version, message))
        case .changes(let entries): try await append(entries, id)
        case .advanced(let version):
            await submit(.advanced(id, version))
            session.reach(version)
        case .integrated(let changeset):
            await submit(.changesetIntegrated(id, changeset))
            session.acknowledged.reach(changeset.clientVersion)
        case .permissionsChanged: await submit(.permissionsChanged(id))
        }
    }

    /// Stores entries and hands them to the machine, before the uploads that follow them and behind those that they follow.
    private func append(_ entries: [OutgoingEntry], _ id: RealmSessionID) async throws {
        var rest = entries[...]
        while let first = rest.first, let session = sessions[id], let file = session.file {
            // Only for uploads: an entry may have the changes of several commits, so a mark must wait for it.
            session.settled.reach(first.entry.serverVersion - min(first.entry.serverVersion, 1))
            // A client that sends its changesets again after a crash reads them by these entries.
            let mayWait = !session.isIntegrating
            try await untilAcknowledged(first.entry.clientVersion, id)
            let known = session.acknowledged.count
            let batch = Array(rest.prefix { $0.entry.clientVersion <= known })
            rest = rest.dropFirst(batch.count)
            try await store(batch.map(\.entry), file, mayWait: mayWait)
            await submit(.append(id, batch))
            if let last = batch.last { session.reach(last.entry.serverVersion) }
        }
    }

    /// Stores entries.
    /// - Parameter mayWait: `true` if they may be stored later. Those that a client reads its uploads by, and notices, may not.
    private func store(_ entries: [RealmStreamEntry], _ file: RealmFileSession, mayWait: Bool) async throws {
        let store = services.store
        if mayWait, entries.allSatisfy({ $0.compensation == nil }), try store.appendLater(entries, to: file) { return }
        try await within(services.waits.store, "Storing changes for file \(file.file)") { try await store.append(entries, to: file) }
    }
}
