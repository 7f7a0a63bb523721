import SluiceCore

/// What becomes of asymmetric objects: read, asked about, made rows of.
struct IngestDecider: Sendable {
    let rules: any Rules
    let authority: any SchemaAuthority

    /// - Parameters:
    ///   - records: one object each, as extended JSON.
    ///   - name: the asymmetric type.
    /// - Throws: when the rules cannot answer; nothing is decided then.
    func decide(_ records: [[UInt8]], of name: String) async throws -> (accepted: [AcceptedObject], refused: [RefusedObject]) {
        let schema = authority.current().schema
        guard let type = schema[name] else {
            throw SluiceError(.ingestUnknownType, "Class \(name) is not in the schema any more.")
        }
        var refused: [RefusedObject] = []
        var objects: [[String: Value]] = []
        var texts: [String] = []
        for record in records {
            let text = String(decoding: record, as: UTF8.self)
            do throws(SluiceError) {
                objects.append(try ExtendedJSON.values(try JSON.parse(record), type: type))
                texts.append(text)
            } catch {
                refused.append(RefusedObject(type: type.name, code: .ingestMalformed, reason: error.message, object: text))
            }
        }
        let verdicts = objects.isEmpty ? [] : try await rules.ingest(type: type, objects)
        var accepted: [AcceptedObject] = []
        for (index, verdict) in verdicts.enumerated() {
            switch apply(verdict, to: objects[index], type, schema) {
            case .success(let object?): accepted.append(object)
            case .success(nil): break
            case .failure(let error):
                refused.append(RefusedObject(type: type.name, code: error.code, reason: error.message, object: texts[index]))
            }
        }
        return (accepted, refused)
    }

    private func apply(
        _ verdict: IngestVerdict, to object: [String: Value], _ type: ObjectType, _ schema: Schema
    ) -> Result<AcceptedObject?, SluiceError> {
        switch verdict {
        case .accept: row(object, type)
        case .transform(let values): row(values, type)
        case .route(let name, let values):
            if let target = schema[name], target.kind == .asymmetric {
                row(values, target)
            } else {
                .failure(SluiceError(.ingestUnknownType, "The ingest rules routed an object to \(name), which is no asymmetric class."))
            }
        case .drop: .success(nil)
        case .reject(let reason): .failure(SluiceError(.ingestRejected, reason))
        }
    }

    private func row(_ values: [String: Value], _ type: ObjectType) -> Result<AcceptedObject?, SluiceError> {
        var row = Row(type.properties.map { _ in .null })
        for (name, value) in values {
            guard let index = type.index(of: name) else {
                return .failure(SluiceError(.unknownProperty, "Class \(type.name) has no property \(name)."))
            }
            row[index] = value
        }
        guard let key = type.primaryKey, row[key]?.isNull == false else {
            return .failure(SluiceError(.ingestMalformed, "An object of class \(type.name) has no primary key."))
        }
        return .success(AcceptedObject(type: type, row: row))
    }
}
