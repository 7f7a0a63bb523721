import SluiceCore

/// What was decided of some records.
struct IngestDecision: Sendable {
    var accepted: [AcceptedObject] = []
    var refused: [RefusedObject] = []
    /// How many the rules let go for which reason.
    var dropped: [String: Int] = [:]
}

/// What becomes of asymmetric objects: read, asked about, made rows of.
struct IngestDecider: Sendable {
    let rules: any Rules
    let authority: any SchemaAuthority

    /// - Parameters:
    ///   - records: one object each, all of one type.
    ///   - name: the asymmetric type.
    /// - Throws: when the rules cannot answer; nothing is decided then.
    func decide(_ records: [IngestRecord], of name: String) async throws -> IngestDecision {
        let schema = authority.current().schema
        guard let type = schema[name] else {
            throw SluiceError(.ingestUnknownType, "Class \(name) is not in the schema any more.")
        }
        var decision = IngestDecision()
        var objects: [[String: Value]] = []
        var readable: [IngestRecord] = []
        for record in records {
            do throws(SluiceError) {
                if let problem = record.problem { throw problem }
                objects.append(try ExtendedJSON.values(try JSON.parse(record.bytes), type: type, schema: schema))
                readable.append(record)
            } catch {
                decision.refused.append(RefusedObject(record: record, code: .ingestMalformed, reason: error.message))
            }
        }
        let verdicts = objects.isEmpty ? [] : try await rules.ingest(type: type, objects)
        for (index, verdict) in verdicts.enumerated() {
            if case .drop(let reason) = verdict {
                decision.dropped[reason, default: 0] += 1
                continue
            }
            do throws(SluiceError) {
                for (type, row) in try rows(verdict, of: objects[index], type, schema) {
                    decision.accepted.append(AcceptedObject(type: type, row: row, record: readable[index]))
                }
            } catch {
                decision.refused.append(RefusedObject(record: readable[index], code: error.code, reason: error.message))
            }
        }
        return decision
    }

    /// The rows that an object becomes.
    private func rows(
        _ verdict: IngestVerdict, of object: [String: Value], _ type: ObjectType, _ schema: Schema
    ) throws(SluiceError) -> [(ObjectType, Row)] {
        switch verdict {
        case .accept: return [try row(object, type)]
        case .transform(let values): return [try row(values, type)]
        case .route(let name, let values): return [try row(values, try target(name, schema))]
        // All of the parts or none: an object that is mended and sent again must not find half of itself there.
        case .split(let parts):
            var rows: [(ObjectType, Row)] = []
            for part in parts { rows.append(try row(part.values, try target(part.type, schema))) }
            return rows
        case .drop: return []
        case .reject(let reason): throw SluiceError(.ingestRejected, reason)
        }
    }

    private func target(_ name: String, _ schema: Schema) throws(SluiceError) -> ObjectType {
        guard let target = schema[name], target.kind == .asymmetric else {
            throw SluiceError(.ingestUnknownType, "The ingest rules routed an object to \(name), which is no asymmetric class.")
        }
        return target
    }

    private func row(_ values: [String: Value], _ type: ObjectType) throws(SluiceError) -> (ObjectType, Row) {
        var row = Row(type.properties.map { _ in .null })
        for (name, value) in values {
            guard let index = type.index(of: name) else {
                throw SluiceError(.unknownProperty, "Class \(type.name) has no property \(name).")
            }
            row[index] = value
        }
        guard let key = type.primaryKey, row[key]?.isNull == false else {
            throw SluiceError(.ingestMalformed, "An object of class \(type.name) has no primary key.")
        }
        return (type, row)
    }
}
