import SluiceCore
import SluicePorts
import SluiceValues

/// The decisions about some records.
struct IngestDecision: Sendable {
    /// The accepted objects, at most one element for each class.
    var accepted: [AcceptedObjects] = []
    var refused: [RejectedObject] = []
    /// The number of objects dropped by the rules, by reason.
    var dropped: [String: Int] = [:]
}

/// Decides about asymmetric objects: decodes them, asks the rules, creates rows.
struct IngestDecider: Sendable {
    let rules: any Rules
    let authority: any SchemaAuthority

    /// Decides about records.
    /// - Parameters:
    ///   - records: One object each, all of one class.
    ///   - name: The asymmetric class.
    /// - Throws: if the rules cannot answer or the class is unknown. Nothing is decided then.
    func decide(_ records: [IngestRecord], of name: String) async throws -> IngestDecision {
        let schema = authority.current().schema
        guard let type = schema[name] else {
            throw SluiceError(.ingestUnknownType, "Class \(name) is no longer in the schema.")
        }
        var decision = IngestDecision()
        let objects = read(records, type, schema, &decision)
        var sorter = VerdictSorter(type, schema, objects, decision)
        sorter.apply(try await verdicts(of: objects))
        return sorter.finish()
    }

    private func verdicts(of objects: AcceptedObjects) async throws -> [Result<IngestVerdict, SluiceError>?] {
        var asking = IngestAsking(count: objects.rows.count)
        while true {
            let range: Range<Int>
            switch try asking.next() {
            case .ask(let asked): range = asked
            case .probe: range = 0..<0
            case .done: return asking.verdicts
            }
            do {
                let asked = ObjectRows(type: objects.type, buffer: objects.buffer, rows: Array(objects.rows[range]))
                asking.answered(try await rules.ingest(asked))
            } catch let error as SluiceError {
                try asking.failed(error)
            }
        }
    }

    /// Decodes the records into rows. Rejects those that are no objects of the class.
    private func read(
        _ records: [IngestRecord], _ type: ObjectType, _ schema: Schema, _ decision: inout IngestDecision
    ) -> AcceptedObjects {
        var reader = JSONRowReader(type, in: schema)
        var objects = AcceptedObjects(type)
        objects.rows.reserveCapacity(records.count)
        objects.records.reserveCapacity(records.count)
        for record in records {
            // Fast path without an intermediate JSON value. A failure is decoded again below, for its reason.
            if record.problem == nil, record.bytes.count <= Limits.ingestObjectBytes,
                let row = reader.read(record.bytes, into: &objects.buffer)
            {
                objects.rows.append(row)
                objects.records.append(record)
                continue
            }
            do throws(SluiceError) {
                if let problem = record.problem { throw problem }
                guard record.bytes.count <= Limits.ingestObjectBytes else { throw IngestCheck.tooLarge(type.name, record.bytes.count) }
                let row = try ExtendedJSON.row(try JSON.parse(Array(record.bytes)), type: type, schema: schema)
                objects.rows.append(objects.buffer.append(row))
                objects.records.append(record)
            } catch {
                let code: ErrorCode = error.code == .ingestTooLarge ? .ingestTooLarge : .ingestMalformed
                decision.refused.append(RejectedObject(record: record, code: code, reason: error.operatorText))
            }
        }
        return objects
    }
}

/// Sorts objects by the rules' verdicts.
private struct VerdictSorter {
    private let type: ObjectType
    private let schema: Schema
    private let objects: AcceptedObjects
    private var decision: IngestDecision
    /// The objects that keep their class. Its buffer begins with that of `objects`.
    private var staying: AcceptedObjects
    /// The objects routed to other classes, by class name.
    private var others: [String: AcceptedObjects] = [:]

    init(_ type: ObjectType, _ schema: Schema, _ objects: AcceptedObjects, _ decision: IngestDecision) {
        self.type = type
        self.schema = schema
        self.objects = objects
        self.decision = decision
        staying = AcceptedObjects(type)
        staying.buffer = objects.buffer
    }

    /// Applies the verdicts.
    /// - Parameter verdicts: For each object the verdict or the rules' error; nil accepts it.
    mutating func apply(_ verdicts: [Result<IngestVerdict, SluiceError>?]) {
        for (index, verdict) in verdicts.enumerated() {
            do throws(SluiceError) {
                try apply(try verdict?.get() ?? .accept, to: index)
            } catch {
                decision.refused.append(RejectedObject(record: objects.records[index], code: error.code, reason: error.operatorText))
            }
        }
    }

    private mutating func apply(_ verdict: IngestVerdict, to index: Int) throws(SluiceError) {
        switch verdict {
        case .accept: try stay(index)
        case .amend(let values):
            for (name, value) in values {
                guard let property = type.index(of: name) else { throw Self.noProperty(type, name) }
                staying.buffer.set(objects.rows[index], property, value)
            }
            try stay(index)
        case .transform(let values): add(try row(values, type), of: type, index)
        case .route(let name, let values):
            let target = try target(name)
            add(try row(values, target), of: target, index)
        // All parts or none: a corrected object that is sent again must not find parts of itself stored.
        case .split(let parts):
            var rows: [(ObjectType, Row)] = []
            for part in parts {
                let target = try target(part.type)
                rows.append((target, try row(part.values, target)))
            }
            for (type, row) in rows { add(row, of: type, index) }
        case .drop(let reason): decision.dropped[reason, default: 0] += 1
        case .reject(let reason): throw SluiceError(.ingestRejected, reason)
        }
    }

    private mutating func stay(_ index: Int) throws(SluiceError) {
        let row = objects.rows[index]
        // An amendment may have set the key to null.
        guard let key = type.primaryKey, staying.buffer.holds(row, key) else { throw Self.noKey(type) }
        staying.rows.append(row)
        staying.records.append(objects.records[index])
    }

    private mutating func add(_ row: Row, of type: ObjectType, _ index: Int) {
        if type.name == self.type.name {
            staying.add(row, objects.records[index])
        } else {
            others[type.name, default: AcceptedObjects(type)].add(row, objects.records[index])
        }
    }

    private func target(_ name: String) throws(SluiceError) -> ObjectType {
        guard let target = schema[name], target.kind == .asymmetric else {
            throw SluiceError(.ingestUnknownType, "The ingest rules routed an object to \(name), which is no asymmetric class.")
        }
        return target
    }

    private func row(_ values: [String: Value], _ type: ObjectType) throws(SluiceError) -> Row {
        var row = Row(type.properties.map { _ in .null })
        for (name, value) in values {
            guard let index = type.index(of: name) else { throw Self.noProperty(type, name) }
            row[index] = value
        }
        guard let key = type.primaryKey, row[key]?.isNull == false else { throw Self.noKey(type) }
        return row
    }

    private static func noProperty(_ type: ObjectType, _ name: String) -> SluiceError {
        SluiceError(.unknownProperty, "Class \(type.name) has no property \(name).")
    }

    private static func noKey(_ type: ObjectType) -> SluiceError {
        SluiceError(.ingestMalformed, "An object of class \(type.name) has no primary key.")
    }

    func finish() -> IngestDecision {
        var decision = decision
        decision.accepted = ([staying] + others.values).filter { !$0.rows.isEmpty }
        return decision
    }
}

extension RowBuffer {
    /// Returns `true` if a row has a non-null value of a property.
    fileprivate func holds(_ row: RowRef, _ property: Int) -> Bool {
        let tag = cells[Int(row.start) + property].tag
        return tag != .absent && tag != .null
    }
}

extension AcceptedObjects {
    fileprivate mutating func add(_ row: Row, _ record: IngestRecord) {
        rows.append(buffer.append(row))
        records.append(record)
    }
}
