import SluiceCore
import SluiceMerge
import SluicePorts
import Synchronization

/// The outcome of a changeset: the writes to make and the rejected ones.
struct CommitPlan {
    struct Write {
        var intended: IntendedWrite
        var stored: StoredWrite
        var clocks: ObjectClocks
        /// The stored clocks; nil if none exist.
        var known: ObjectClocks?
        /// The values that the client sent, kept for the record of a rejection.
        var wanted: [String: Value]
    }

    /// Clocks to keep for an object without a row.
    struct Remembered {
        var object: ObjectKey
        var type: ObjectType
        var clocks: ObjectClocks
    }

    /// A write to an object without a row.
    struct Futile {
        var object: ObjectKey
        var wanted: [String: Value]
        /// `true` for a final delete. It has its effect already, so it is not futile.
        var isDelete: Bool
        var isCreation: Bool
    }

    /// The number of the changeset.
    let changeset: UInt64
    /// The author and time of the changeset.
    private let writer: WriteContext
    /// The edits of objects that do not exist.
    var futile: [Futile] { missing.filter { !$0.isDelete } }
    private var missing: [Futile] = []
    private(set) var remembered: [Remembered] = []
    private(set) var writes: [Write] = []
    private(set) var rejected: [WriteRejection] = []

    init(changeset: UInt64, by writer: WriteContext) {
        self.changeset = changeset
        self.writer = writer
    }

    /// Adds the merged state of one object.
    /// - Parameters:
    ///   - stored: The object before the changeset; nil if neither a row nor clocks exist.
    ///   - isUnseen: `true` if the client creates the object and had not seen the existing row.
    ///   - hidden: The properties of the stored row that the client may not see.
    mutating func add(
        _ object: ObjectKey, _ type: ObjectType, stored before: StoredObject?, after state: ObjectState, wanted: [ObjectChange],
        isUnseen: Bool, hidden: Set<Int>
    ) {
        let (before, known) = (before?.row, before?.clocks)
        let after = state.values.map { Row(values: $0, key: object.key, type: type) }
        let changed = Set(
            type.properties.indices.filter { (before?[$0] ?? .null) != (after?[$0] ?? .null) && $0 != type.primaryKey })
        let operation: Operation
        let stored: StoredWrite
        switch (before, after) {
        case (nil, let row?):
            operation = .insert
            stored = .insert(row)
        case (_?, nil):
            operation = .delete
            stored = .delete
        case (_?, let row?):
            operation = .update
            let values = changed.map { ($0, row[$0] ?? .null) }
            // The values lost, or are equal: only the clocks are stored.
            stored = changed.isEmpty ? .nothing : .update(Dictionary(uniqueKeysWithValues: values))
        case (nil, nil):
            // Edits of a missing object have no effect, and a user who may create it is not told. A later delete must keep its clocks.
            // For an external delete the changeset must not decide the time.
            if state.clocks.isDeleted, wanted.contains(where: { $0.kind == .delete }) {
                remembered.append(Remembered(object: object, type: type, clocks: state.clocks))
            }
            missing.append(
                Futile(
                    object: object, wanted: wanted.values, isDelete: wanted.last?.kind == .delete, isCreation: wanted.isCreation))
            return
        }
        let intended = IntendedWrite(
            object: object, type: type, operation: operation, before: before, after: after, changed: changed, named: wanted.named(of: type),
            creation: isUnseen ? .unseen : wanted.isCreation ? .made : .none)
        var values = wanted.values
        // An edit inside a value is recorded as the value that it would have produced, which has the stored one in it.
        for name in wanted.flatMap(\.edits).map(\.property) where type.index(of: name).map({ !hidden.contains($0) }) ?? false {
            values[name] = state.values?[name]
        }
        writes.append(Write(intended: intended, stored: stored, clocks: state.clocks, known: known, wanted: values))
    }

    /// Rejects the writes that the session may not make.
    ///
    /// Each write is judged alone. A legal write stands even if an earlier one to the same object was rejected, because the device may
    /// not know that yet. Only an edit of an object whose creation was rejected has no effect, and it is reported.
    /// - Parameter undone: Objects with a rejection that the client has not acknowledged.
    mutating func refuse(_ check: WriteCheck, undone: Set<ObjectKey>) {
        var allowed: [Write] = []
        for write in writes {
            if let refusal = check.refusal(write.intended) { reject(write, refusal) } else { allowed.append(write) }
        }
        writes = allowed
        var refused: Set<ObjectKey> = []
        for write in missing {
            guard let refusal = check.refusal(ofMissing: write.object, isCreation: write.isCreation) else { continue }
            reject(write.object, refusal, write.wanted)
            refused.insert(write.object)
        }
        missing.removeAll { refused.contains($0.object) }
        remembered.removeAll { refused.contains($0.object) || undone.contains($0.object) || !check.mayDelete($0.type.name) }
        for edit in futile where undone.contains(edit.object) {
            let message =
                "\(edit.object.type) \(edit.object.key.keyText) does not exist, because its creation was undone. This write was undone too."
            reject(edit.object, Rejection(cause: .neverMade, message: message, rule: "an earlier refusal"), edit.wanted)
        }
        missing.removeAll { undone.contains($0.object) }
    }

    /// Rejects changes that contradict the stored row, if the session may not make any change of these properties.
    /// - Returns: `false` if it may, and so sees what its changes contradict.
    mutating func refuse(
        _ object: ObjectKey, _ type: ObjectType, stored row: Row, wanted: [ObjectChange], _ check: WriteCheck
    ) -> Bool {
        let intended = IntendedWrite(
            object: object, type: type, operation: .update, before: row, after: row, changed: [], named: wanted.named(of: type),
            creation: wanted.isCreation ? .made : .none)
        guard let refusal = check.refusal(intended) else { return false }
        reject(object, refusal, wanted.values)
        return true
    }

    /// Rejects changes that contradict the absence of an object, if the session may not create it.
    /// - Returns: `false` if it may, and so sees that the object is missing.
    mutating func refuse(missing object: ObjectKey, wanted: [ObjectChange], _ check: WriteCheck) -> Bool {
        guard let refusal = check.refusal(ofMissing: object, isCreation: wanted.isCreation) else { return false }
        reject(object, refusal, wanted.values)
        return true
    }

    /// Rejects changes that presuppose a rejected write of the client, or one that lost.
    mutating func refuse(behindRejection object: ObjectKey, wanted: [ObjectChange]) {
        let message = "\(object.type) \(object.key.keyText) lacks elements whose insertion was undone. This write was undone too."
        let rejection = Rejection(cause: .neverMade, message: message, rule: "an earlier refusal")
        reject(object, rejection, wanted.values)
    }

    /// Rejects an object whose key no table can store.
    mutating func refuse(unkeyable object: ObjectKey, wanted: [ObjectChange]) {
        let name = "\(object.type) \(object.key.keyText)".unicodeScalars.map { $0 == "\0" ? "␀" : String($0) }.joined()
        let error = SluiceError(.writeNotAllowed, "\(name) has a NUL character in its key, which PostgreSQL cannot store.")
        reject(object, Self.refusal(error), wanted.values)
    }

    /// Rejects all remaining writes for one reason.
    mutating func refuseAll(_ error: SluiceError) {
        for write in writes { reject(write, Self.refusal(error)) }
        writes = []
        remembered = []
    }

    /// Rejects the writes that the database rejected in an earlier attempt.
    mutating func refuse(_ errors: [ObjectKey: SluiceError]) {
        if errors.isEmpty { return }
        for write in writes { if let error = errors[write.intended.object] { reject(write, Self.refusal(error)) } }
        writes.removeAll { errors[$0.intended.object] != nil }
        remembered.removeAll { errors[$0.object] != nil }
    }

    private static func refusal(_ error: SluiceError) -> Rejection {
        Rejection(code: error.code, cause: .database, message: error.message, rule: error.cause?.description ?? error.code.name)
    }

    /// Asks the plugins that review writes, except for verdicts that are known already. A failing plugin denies.
    mutating func ask(_ rules: any Rules, _ check: WriteCheck, user: UserContext, known: Verdicts) async throws {
        var verdicts: [Int: WriteVerdict] = [:]
        var asked: [(index: Int, write: ProposedWrite)] = []
        for (index, write) in writes.enumerated() where check.asksPlugin(write.intended.object.type) {
            let proposal = ProposedWrite(write.intended)
            // A retried transaction must not ask twice: a plugin may count or record each write.
            verdicts[index] = known.verdict(on: proposal, of: write.intended.object)
            if verdicts[index] == nil { asked.append((index, proposal)) }
        }
        let answers = try await Self.verdicts(on: asked.map(\.write), rules, user: user)
        for (question, verdict) in zip(asked, answers) {
            known.note(verdict, on: question.write, of: writes[question.index].intended.object)
            verdicts[question.index] = verdict
        }
        if !verdicts.isEmpty { take(verdicts, check) }
    }

    private static func verdicts(
        on writes: [ProposedWrite], _ rules: any Rules, user: UserContext
    ) async throws -> [WriteVerdict] {
        guard !writes.isEmpty else { return [] }
        do {
            let verdicts = try await rules.checkWrites(user: user, writes)
            // Verdicts are assigned by index.
            guard verdicts.count == writes.count else {
                throw SluiceError(.pluginBadAnswer, "The rules gave \(verdicts.count) verdicts on \(writes.count) writes.")
            }
            return verdicts
        } catch let error as SluiceError {
            // Fail closed: without an answer, every write of the request is rejected.
            return writes.map { _ in .undecided(error) }
        }
    }

    private mutating func take(_ verdicts: [Int: WriteVerdict], _ check: WriteCheck) {
        var allowed: [Write] = []
        for (index, write) in writes.enumerated() {
            switch verdicts[index] ?? .allow {
            case .allow: allowed.append(write)
            case .deny(let reason, let rule, let fields):
                reject(write, Rejection(cause: .plugin, message: reason, rule: rule, fields: fields))
            case .undecided(let error): reject(write, Self.refusal(undecided: error))
            case .amend(let values):
                guard let amended = amend(write, values) else {
                    let message = "The rules amended the object with a property that it does not have."
                    reject(write, Rejection(code: .pluginBadAnswer, cause: .pluginFailed, message: message, rule: "check_write"))
                    continue
                }
                // A plugin's values are checked like a client's, as an unreadable row would be lost to every device.
                if let misfit = check.misfit(amended.intended) {
                    reject(write, Self.refusal(amended: write, misfit))
                } else {
                    allowed.append(amended)
                }
            }
        }
        writes = allowed
    }

    /// Builds the rejection of an amended write. It hides the amended property and value, which the user may not be allowed to see.
    private static func refusal(amended write: Write, _ misfit: Rejection) -> Rejection {
        let name = "\(write.intended.object.type) \(write.intended.object.key.keyText)"
        return Rejection(
            cause: misfit.cause,
            message: "\(name), with what the rules set in it, would be too large or not fit its class; the write was undone.",
            rule: "check_write: \(misfit.message)")
    }

    private static func refusal(undecided error: SluiceError) -> Rejection {
        var refusal = Rejection(unasked: error)
        // A refusal's reason is meant for the user. Other errors are for operators only.
        if error.code == .pluginRefused { (refusal.cause, refusal.message) = (.plugin, error.message) }
        return refusal
    }

    /// Returns the write with a plugin's values in place of the client's; nil if the plugin names an unknown property.
    private func amend(_ write: Write, _ values: [String: Value]) -> Write? {
        // A delete has no values to amend.
        guard var after = write.intended.after else { return write }
        var amended = write
        for (name, value) in values {
            guard let index = write.intended.type.index(of: name) else { return nil }
            after[index] = value
            amended.intended.changed.insert(index)
            let property = write.intended.type.properties[index]
            // The plugin saw the merged object, so its value wins over everything merged so far.
            amended.clocks.properties[property.id] = Merge.amend(property, to: value, by: writer, write.clocks.properties[property.id])
        }
        amended.intended.after = after
        amended.stored =
            switch write.intended.operation {
            case .insert: .insert(after)
            case .delete: .delete
            case .update: .update(Dictionary(uniqueKeysWithValues: amended.intended.changed.map { ($0, after[$0] ?? .null) }))
            }
        return amended
    }

    /// The decision to store.
    var decision: WriteDecision {
        let kept = remembered.map { WriteDecision.Write(type: $0.type, key: $0.object.key, change: .nothing, clocks: $0.clocks) }
        let allowed = writes.map {
            WriteDecision.Write(
                type: $0.intended.type, key: $0.intended.object.key, change: $0.stored, clocks: $0.clocks,
                // Devices receive only the clocks that this changeset has changed.
                times: WriteTimes($0.clocks, since: $0.known))
        }
        return WriteDecision(writes: allowed + kept, rejected: rejected, futile: futile.map(\.object))
    }

    private typealias Rejection = WriteCheck.Rejection

    private mutating func reject(_ write: Write, _ refusal: Rejection) { reject(write.intended.object, refusal, write.wanted) }

    /// Records a rejection. Drops values nested too deeply to be read back as one JSON object.
    private mutating func reject(_ object: ObjectKey, _ refusal: Rejection, _ wanted: [String: Value]) {
        let wanted = wanted.filter { $0.value.jsonDepth < Limits.nestingDepth }
        rejected.append(
            WriteRejection(
                changeset: changeset, object: object, code: refusal.code, cause: refusal.cause, reason: refusal.message,
                fields: refusal.fields, rule: refusal.rule, values: wanted))
    }
}

/// The plugins' verdicts on the writes of one changeset.
/// If the database aborts an attempt, the next one asks only about writes that have changed. A plugin that counts or records writes
/// therefore sees each once.
final class Verdicts: Sendable {
    private let known = Mutex<[ObjectKey: (write: ProposedWrite, verdict: WriteVerdict)]>([:])

    /// Returns the verdict on a write with these images; nil if no plugin was asked.
    func verdict(on write: ProposedWrite, of object: ObjectKey) -> WriteVerdict? {
        known.withLock { known in known[object].flatMap { $0.write == write ? $0.verdict : nil } }
    }

    func note(_ verdict: WriteVerdict, on write: ProposedWrite, of object: ObjectKey) {
        known.withLock { $0[object] = (write, verdict) }
    }
}

extension [ObjectChange] {
    fileprivate var isCreation: Bool { contains { $0.kind == .create } }

    /// The values that the changes set as a whole, by property.
    fileprivate var values: [String: Value] { reduce(into: [:]) { $0.merge($1.values) { $1 } } }

    /// The indices of the properties that the changes set, add to or edit.
    fileprivate func named(of type: ObjectType) -> Set<Int> {
        var names: Set<String> = []
        for change in self {
            names.formUnion(change.values.keys)
            names.formUnion(change.counters.keys)
            names.formUnion(change.edits.map(\.property))
        }
        return Set(names.compactMap { type.index(of: $0) })
    }
}

extension ProposedWrite {
    fileprivate init(_ write: IntendedWrite) {
        self.init(type: write.type, operation: write.operation, before: write.before, after: write.after)
    }
}

extension Row {
    /// Creates a row in property order from values by name. Missing values become null.
    init(values: [String: Value], key: Value, type: ObjectType) {
        self.init(type.properties.map { values[$0.name] ?? .null })
        if let index = type.primaryKey { self[index] = key }
    }

    /// Returns the values by property name.
    func named(_ type: ObjectType) -> [String: Value] {
        var named: [String: Value] = [:]
        for (index, property) in type.properties.enumerated() {
            if let value = self[index] { named[property.name] = value }
        }
        return named
    }
}
