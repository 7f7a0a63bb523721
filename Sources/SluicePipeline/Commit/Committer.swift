package import SluiceCore
import SluiceMerge

/// Makes client changesets durable: merge, check, write, in one PostgreSQL transaction each.
///
/// A changeset takes effect once however often it is sent: its number is locked and compared in the transaction that writes
/// it (G2). Refusals are per object (UP-6); what was refused is kept with its values.
package struct Committer: Sendable {
    private let store: any WriteStore
    private let rules: any Rules
    private let environment: any Environment

    package init(store: any WriteStore, rules: any Rules, environment: any Environment) {
        self.store = store
        self.rules = rules
        self.environment = environment
    }

    /// On whose behalf.
    package struct Writer: Sendable {
        package var client: ClientID
        /// Of the client's file; see `ClientFile`.
        package var session: UInt64
        package var user: UserContext
        package var plan: SessionPlan
        package var view: View
        package var schema: AppSchema
        /// The last compensation that the client has applied.
        package var compensation: UInt64
        package var seen: SeenRows
    }

    package struct Outcome: Sendable {
        /// At or after the commit.
        package var lsn: LSN
        package var rejected: [RejectedWrite]
        /// The number under which the rejections are kept; nil when there are none.
        package var compensation: UInt64?
    }

    /// - Throws: `badChangeset` when the changeset contradicts the schema or skips a number: nothing is written then.
    package func commit(_ changeset: Changeset, by writer: Writer) async throws -> Outcome {
        let types = Set(changeset.changes.map(\.object.type))
        let check = try WriteCheck(plan: writer.plan, view: writer.view, schema: writer.schema, types: types)
        let (applied, lsn): (Applied, LSN)
        do {
            (applied, lsn) = try await store.transaction { transaction in
                try await self.apply(changeset, by: writer, check, in: transaction, refusing: nil)
            }
        } catch let error as SluiceError where error.code == .writeNotAllowed {
            // A constraint of the database refused a value: all of the changeset is refused, and the client goes on.
            (applied, lsn) = try await store.transaction { transaction in
                try await self.apply(changeset, by: writer, check, in: transaction, refusing: error)
            }
        }
        return Outcome(lsn: lsn, rejected: applied.rejected, compensation: applied.compensation)
    }

    private struct Applied: Sendable {
        var rejected: [RejectedWrite] = []
        var compensation: UInt64?
    }

    private func apply(
        _ changeset: Changeset, by writer: Writer, _ check: WriteCheck, in transaction: any WriteTransaction,
        refusing refusal: SluiceError?
    ) async throws -> Applied {
        let origin = Origin(client: writer.client, changeset: changeset.number)
        let (last, now, horizon) = try await transaction.begin(origin, session: writer.session)
        guard changeset.number > last else { return Applied() }
        guard changeset.number == last + 1 else {
            throw SluiceError(.badChangeset, "Changeset \(changeset.number) of client \(writer.client) came after \(last).")
        }
        let blocked = try await transaction.rejectedObjects(client: writer.client, after: writer.compensation)
        let stored = try await load(changeset, writer, in: transaction)
        var plan = try merge(changeset, stored, now: now, horizon: horizon, writer)
        plan.refuse(check, blocked: blocked)
        try await plan.ask(rules, check, user: writer.user)
        if let refusal { plan.refuseAll(refusal) }
        for write in plan.writes {
            try await transaction.write(write.intended.type, key: write.intended.object.key, write.stored, clocks: write.clocks)
        }
        for kept in plan.remembered {
            try await transaction.write(kept.type, key: kept.object.key, .nothing, clocks: kept.clocks)
        }
        var applied = Applied(rejected: plan.rejected)
        if !plan.rejected.isEmpty { applied.compensation = try await transaction.reject(client: writer.client, plan.rejected) }
        try await transaction.finish(origin, base: changeset.base)
        return applied
    }

    private func load(
        _ changeset: Changeset, _ writer: Writer, in transaction: any WriteTransaction
    ) async throws -> [ObjectKey: StoredObject] {
        var keys: [String: Set<Value>] = [:]
        for change in changeset.changes { keys[change.object.type, default: []].insert(change.object.key) }
        var stored: [ObjectKey: StoredObject] = [:]
        // Types and keys in one order everywhere, so that two transactions lock their rows in the same order.
        for (name, keys) in keys.sorted(by: { $0.key < $1.key }) {
            guard let type = writer.schema.schema[name] else {
                throw SluiceError(.unknownType, "Changeset \(changeset.number) writes class \(name), which the server does not have.")
            }
            let ordered = keys.sorted { PartitionKey.text(of: $0).lexicographicallyPrecedes(PartitionKey.text(of: $1)) }
            for (key, object) in try await transaction.load(type, keys: ordered) {
                stored[ObjectKey(type: name, key: key)] = object
            }
        }
        return stored
    }

    /// Applies the changes object by object, in the order of first mention.
    private func merge(
        _ changeset: Changeset, _ stored: [ObjectKey: StoredObject], now: LSN, horizon: LSN, _ writer: Writer
    ) throws -> CommitPlan {
        let wall = environment.wallMilliseconds()
        var clock = HybridClock()
        let time = clock.observe(changeset.time, now: wall)
        let context = WriteContext(stamp: WriteStamp(time: time, client: writer.client), base: changeset.base, now: now)
        var order: [ObjectKey] = []
        var changes: [ObjectKey: [ObjectChange]] = [:]
        for change in changeset.changes {
            if changes[change.object] == nil { order.append(change.object) }
            changes[change.object, default: []].append(change)
        }
        var plan = CommitPlan(changeset: changeset.number)
        for object in order {
            guard let type = writer.schema.schema[object.type] else { continue }
            let before = stored[object]
            var state = ObjectState(
                row: before?.row?.named(type), clocks: before?.clocks, type: type, rowTime: before?.rowTime ?? wall, now: now)
            for change in changes[object] ?? [] { try Merge.apply(change, by: context, to: &state, type: type) }
            state.clocks.prune(below: horizon)
            let isMade = changes[object]?.first?.kind == .create && before?.row != nil
            let isUnseen = isMade && before?.writer.map { writer.seen.includes($0, at: changeset.base) } ?? false
            plan.add(object, type, before: before?.row, after: state, wanted: changes[object] ?? [], isUnseen: isUnseen)
        }
        return plan
    }
}
