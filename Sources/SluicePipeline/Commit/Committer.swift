package import SluiceCore
import SluiceMerge
package import SluicePorts

/// Commits client changesets: merge, check and write, in one PostgreSQL transaction each.
///
/// A changeset takes effect once, however often it is sent: the writing transaction locks and compares its number. Rejections are per
/// object and are stored with their values.
package struct Committer: Sendable {
    private let store: any WriteStore
    private let rules: any Rules
    private let environment: any Environment
    private let bound: @Sendable (String) -> RowBound
    private let refused: RefusedValues
    private let tracer: (any UploadTracer)?

    /// - Parameters:
    ///   - bound: Returns the size bound of a class's objects. A write that exceeds it is rejected.
    ///   - refused: The bounds of the values of rejected writes; nil for those of this committer alone.
    package init(
        store: any WriteStore, rules: any Rules, environment: any Environment,
        bound: @escaping @Sendable (_ type: String) -> RowBound = { _ in RowBound() }, refused: RefusedValues? = nil,
        tracer: (any UploadTracer)? = nil
    ) {
        self.store = store
        self.rules = rules
        self.environment = environment
        self.bound = bound
        self.refused = refused ?? RefusedValues(environment: environment)
        self.tracer = tracer
    }

    /// The author of a changeset.
    package struct Writer: Sendable {
        package var client: ClientID
        /// The session number of the client replica; see `ClientFile`.
        package var session: UInt64
        package var user: UserContext
        package var permissions: SessionPermissions
        package var view: View
        /// The last compensation that the client has applied.
        package var compensation: UInt64
        package var seen: ClientViewHistory
        package var numbering = ChangesetNumbering.contiguous

        var schema: AppSchema { permissions.schema }
    }

    /// Returns once everything committed before the call survives a crash and may be acknowledged.
    package func durable() async throws { try await store.durable() }

    /// Commits one changeset.
    /// - Throws: `badChangeset` if the changeset contradicts the schema or skips a number; `unknownType` for an unknown class. Nothing is
    ///   written then.
    package func commit(_ changeset: Changeset, by writer: Writer) async throws -> WriteOutcome {
        guard let tracer else { return try await write(changeset, by: writer) }
        let origin = Origin(client: writer.client, changeset: changeset.number)
        return try await tracer.committing(origin, changes: changeset.changes.count) { try await write(changeset, by: writer) }
    }

    private func write(_ changeset: Changeset, by writer: Writer) async throws -> WriteOutcome {
        let types = Set(changeset.changes.map(\.object.type))
        var clock = HybridClock()
        // Bounds the time, so that a device with a fast clock does not win for ever.
        let time = clock.observe(changeset.time, now: environment.wallMilliseconds())
        let work = Work(
            changeset: changeset, time: time, writer: writer, types: types,
            check: WriteCheck(permissions: writer.permissions, view: writer.view, types: types, bound: bound))
        let request = WriteRequest(
            origin: Origin(client: writer.client, changeset: changeset.number, time: time), session: writer.session,
            acknowledged: writer.compensation, time: changeset.time, base: changeset.base, objects: try objects(changeset, writer))
        var refused: [ObjectKey: SluiceError] = [:]
        var first: SluiceError?
        // Each database rejection rolls the transaction back; the next attempt leaves the rejected objects out.
        while true {
            do {
                return try await store.transaction(request, decider(work, refusing: .some(of: refused)))
            } catch let refusal as DatabaseRejection where refusal.isWithin {
                // Objects that depend on each other succeed or fail together. The first rejection caused this one.
                return try await store.transaction(request, decider(work, refusing: .all(first ?? refusal.error)))
            } catch let refusal as DatabaseRejection where refused[refusal.object] == nil && refused.count < Self.refusedOneByOne {
                // A constraint of the database: the other objects stand.
                refused[refusal.object] = refusal.error
                first = first ?? refusal.error
            } catch let refusal as DatabaseRejection {
                return try await store.transaction(request, decider(work, refusing: .all(refusal.error)))
            } catch let error as SluiceError where error.code == .writeNotAllowed {
                // A deferred constraint failed at commit, which does not identify the row.
                return try await store.transaction(request, decider(work, refusing: .all(error)))
            }
        }
    }

    /// The number of objects rejected one at a time, each after a rolled-back transaction. With one more, the whole changeset is
    /// rejected.
    private static let refusedOneByOne = 32

    /// A changeset with the state shared by all attempts to commit it.
    private struct Work: Sendable {
        let changeset: Changeset
        /// The time that its writes merge with.
        let time: HybridTime
        let writer: Writer
        let types: Set<String>
        let check: WriteCheck
        let verdicts = Verdicts()
    }

    /// The database's rejections for a changeset.
    private enum DatabaseRefusals {
        case some(of: [ObjectKey: SluiceError])
        case all(SluiceError)
    }

    private func decider(_ work: Work, refusing refusals: DatabaseRefusals) -> WriteDecider {
        @Sendable func planned(_ basis: WriteBasis) throws -> CommitPlan? {
            guard var plan = try self.plan(work, basis) else { return nil }
            switch refusals {
            case .some(let errors): plan.refuse(errors)
            case .all(let error): plan.refuseAll(error)
            }
            return plan
        }
        // Without plugins the decision needs no suspension, so the transaction never waits for another process.
        guard work.types.contains(where: work.check.asksPlugin) else {
            return .atOnce { try planned($0).map { try decision(of: $0, work) } ?? WriteDecision(isOld: true) }
        }
        return .waiting { basis in
            guard var plan = try planned(basis) else { return WriteDecision(isOld: true) }
            try await plan.ask(self.rules, work.check, user: work.writer.user, known: work.verdicts)
            return try decision(of: plan, work)
        }
    }

    private func decision(of plan: CommitPlan, _ work: Work) throws -> WriteDecision {
        var decision = plan.decision
        decision.rejected = try refused.bounded(decision.rejected, of: work.writer.user.id)
        return decision
    }

    /// Merges and checks a changeset.
    /// - Returns: nil for a changeset that has taken effect before.
    /// - Throws: `badChangeset` if numbers are skipped.
    private func plan(_ work: Work, _ basis: WriteBasis) throws -> CommitPlan? {
        let (changeset, writer) = (work.changeset, work.writer)
        // The store has locked the client's record, so two sends of a changeset cannot both pass.
        guard changeset.number > basis.changeset else { return nil }
        guard writer.numbering == .increasing || changeset.number == basis.changeset + 1 else {
            throw SluiceError(.badChangeset, "Changeset \(changeset.number) of client \(writer.client) arrived after \(basis.changeset).")
        }
        var plan = try merge(work, basis)
        plan.refuse(work.check, undone: basis.rejected)
        return plan
    }

    /// Returns the named objects with classes and keys in one global order, so that concurrent transactions lock rows without deadlock.
    /// - Throws: `unknownType` for a class that the schema lacks.
    private func objects(_ changeset: Changeset, _ writer: Writer) throws -> [(type: ObjectType, keys: [Value])] {
        var keys: [String: Set<Value>] = [:]
        for change in changeset.changes where !change.object.key.isUnstorable {
            keys[change.object.type, default: []].insert(change.object.key)
        }
        return try keys.sorted(by: { $0.key < $1.key }).map { name, keys in
            guard let type = writer.schema.schema[name] else {
                throw SluiceError(.unknownType, "Changeset \(changeset.number) writes class \(name), which the server does not have.")
            }
            return (type, keys.sorted { PartitionKey.text(of: $0).lexicographicallyPrecedes(PartitionKey.text(of: $1)) })
        }
    }

    /// Applies the changes of one object.
    private static func apply(
        _ changes: [ObjectChange], by writer: WriteContext, to state: inout ObjectState, _ type: ObjectType
    ) -> SluiceError? {
        do throws(SluiceError) {
            for change in changes { try Merge.apply(change, by: writer, to: &state, type: type) }
            return nil
        } catch {
            return error
        }
    }

    /// Returns the changes by object, in the order of first mention.
    private static func byObject(_ changeset: Changeset) -> [(object: ObjectKey, changes: [ObjectChange])] {
        var order: [ObjectKey] = []
        var changes: [ObjectKey: [ObjectChange]] = [:]
        for change in changeset.changes {
            if changes[change.object] == nil { order.append(change.object) }
            changes[change.object, default: []].append(change)
        }
        return order.map { ($0, changes[$0] ?? []) }
    }

    /// Applies the changes object by object.
    private func merge(_ work: Work, _ basis: WriteBasis) throws -> CommitPlan {
        let (changeset, writer) = (work.changeset, work.writer)
        let wall = environment.wallMilliseconds()
        var context = WriteContext(stamp: WriteStamp(time: work.time, client: writer.client), base: changeset.base, now: basis.now)
        // Only these clients discard their own changes.
        if writer.numbering == .increasing { context.changeset = changeset.number }
        var plan = CommitPlan(changeset: changeset.number, by: context)
        for (object, wanted) in Self.byObject(changeset) {
            guard let type = writer.schema.schema[object.type] else { continue }
            guard !object.key.isUnstorable else {
                plan.refuse(unkeyable: object, wanted: wanted)
                continue
            }
            let before = basis.stored[object]
            // A missing row without a recorded delete has just been deleted, before any reader saw it (`ExternalDeleteStore`).
            var state = ObjectState(
                row: before?.row?.named(type), clocks: before?.clocks, type: type, rowTime: before?.rowTime ?? wall,
                deletedAt: basis.now, now: basis.now)
            if let error = Self.apply(wanted, by: context, to: &state, type) {
                guard error.code == .badChangeset else { throw error }
                // The error would tell the length of a list that the writer may not see, or that there is no object.
                if let row = before?.row {
                    if plan.refuse(object, type, stored: row, wanted: wanted, work.check) { continue }
                } else if plan.refuse(missing: object, wanted: wanted, work.check) {
                    continue
                }
                // The writer's lists have elements of a write that was undone, or that lost.
                guard basis.rejected.contains(object) || wanted.isBehindCreation else { throw error }
                plan.refuse(behindRejection: object, wanted: wanted)
                continue
            }
            // An app with a smaller model may omit required members of embedded objects.
            if type.hasEmbedded { state.fill(wanted.written, of: type, in: writer.schema.schema, now: basis.now) }
            // No client can write from before the horizon, so older clocks are never compared.
            state.clocks.prune(below: basis.horizon)
            // A create of an existing row merges, unless the row was outside of the client's view.
            let isMade = wanted.first?.kind == .create && before?.row != nil
            let isUnseen = isMade && before?.writer.map { writer.seen.includes($0, at: changeset.base) } ?? false
            // Only the results of edits have stored values in them.
            let hasEdits = wanted.contains { !$0.edits.isEmpty }
            let hidden = hasEdits ? work.check.hidden(in: before?.row, of: type) : []
            plan.add(object, type, stored: before, after: state, wanted: wanted, isUnseen: isUnseen, hidden: hidden)
        }
        return plan
    }
}

extension Value {
    /// `true` for a key that PostgreSQL cannot store or compare: a text with a NUL character.
    fileprivate var isUnstorable: Bool { if case .string(let text) = self { text.utf8.contains(0) } else { false } }
}

extension ObjectType {
    fileprivate var hasEmbedded: Bool { properties.contains { if case .embedded = $0.type { true } else { false } } }
}

extension [ObjectChange] {
    /// `true` if an earlier changeset created the object, and the writer has not received the row since. Changes by others that it does not
    /// know may have voided edits of that changeset.
    fileprivate var isBehindCreation: Bool { contains { $0.kind == .set && $0.discarded.values.contains(where: \.isBeforeCreation) } }

    /// The names of the properties that the changes set or edit.
    fileprivate var written: Set<String> {
        var names: Set<String> = []
        for change in self {
            names.formUnion(change.values.keys)
            names.formUnion(change.edits.map(\.property))
        }
        return names
    }
}
