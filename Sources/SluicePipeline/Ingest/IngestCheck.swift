package import SluiceCore
import SluicePorts
import SluiceValues

/// The checks on asymmetric objects before the rules see them.
package enum IngestCheck {
    /// Splits a client's objects into acceptable and rejected ones, each rejection with its reason.
    static func split(
        _ objects: [ObjectChange], permissions: SessionPermissions
    ) -> (accepted: [(change: ObjectChange, json: [UInt8])], refused: [WriteRejection]) {
        var accepted: [(ObjectChange, [UInt8])] = []
        var refused: [WriteRejection] = []
        for object in objects {
            let name = object.object.type
            let json = ExtendedJSON.json(document(object, permissions.schema.schema)).utf8
            guard let refusal = refusal(of: object, permissions.ingest(name)) ?? tooLarge(json, name) else {
                accepted.append((object, json))
                continue
            }
            refused.append(WriteRejection(object, refusal))
        }
        return (accepted, refused)
    }

    /// - Parameter rights: The user's rights; nil if the server has no such asymmetric class.
    private static func refusal(of object: ObjectChange, _ rights: IngestRights?) -> IngestRights.Rejection? {
        guard let rights else {
            let error = SluiceError(.ingestUnknownType, "Class \(object.object.type) is not an asymmetric class of the server.")
            return IngestRights.Rejection(error: error, rule: error.code.name)
        }
        guard object.kind == .create else {
            let error = SluiceError(.writeNotAllowed, "An object of asymmetric class \(object.object.type) can only be created.")
            return IngestRights.Rejection(error: error, rule: "the class")
        }
        return rights.refusal(of: object.values, key: object.object.key)
    }

    private static func tooLarge(_ json: [UInt8], _ name: String) -> IngestRights.Rejection? {
        guard json.count > Limits.ingestObjectBytes else { return nil }
        let error = tooLarge(name, json.count)
        return IngestRights.Rejection(error: error, rule: error.code.name)
    }

    /// Returns the object with its key, as values by property name.
    static func document(_ object: ObjectChange, _ schema: Schema) -> [String: Value] {
        var values = object.values
        if let type = schema[object.object.type], let key = type.primaryKey { values[type.properties[key].name] = object.object.key }
        return values
    }

    /// Checks that JSON texts are insertable objects of the class.
    /// - Parameter rights: The user's rights; nil for an operator.
    /// - Returns: for each text the primary key, or the error.
    static func check(
        _ records: [[UInt8]], type: ObjectType, schema: Schema, rights: IngestRights?
    ) -> [Result<Value, SluiceError>] {
        var reader = JSONRowReader(type, in: schema)
        var buffer = RowBuffer()
        return records.map { record in
            buffer.removeAll()
            // Fast path without an intermediate JSON value; the slow path finds the reason of a failure.
            if record.count <= Limits.ingestObjectBytes, let key = type.primaryKey, let row = reader.read(record[...], into: &buffer),
                let value = buffer.withView(row, { $0.value(key) }), !value.isNull
            {
                let refusal = rights?.isConditional == true ? buffer.withView(row, { rights?.refusal(of: $0) }) : nil
                return refusal.map { .failure($0.error) } ?? .success(value)
            }
            return check(record, type: type, schema: schema, rights: rights)
        }
    }

    private static func check(
        _ record: [UInt8], type: ObjectType, schema: Schema, rights: IngestRights?
    ) -> Result<Value, SluiceError> {
        Result { () throws(SluiceError) in
            guard record.count <= Limits.ingestObjectBytes else { throw tooLarge(type.name, record.count) }
            let json: JSON
            do throws(JSONError) { json = try JSON.located(record) } catch {
                throw SluiceError(.ingestMalformed, "column \(error.column): \(error.problem).")
            }
            let values = try ExtendedJSON.values(json, type: type, schema: schema)
            guard let key = type.primaryKey, let value = values[type.properties[key].name], !value.isNull else {
                throw SluiceError(.ingestMalformed, "An object of class \(type.name) has no primary key.")
            }
            if let refusal = rights?.refusal(of: values, key: value) { throw refusal.error }
            return value
        }
    }

    /// Returns the error for an object over `Limits.ingestObjectBytes`.
    /// - Parameter bytes: The size; nil if unknown.
    package static func tooLarge(_ type: String, _ bytes: Int? = nil) -> SluiceError {
        let size = bytes.map { "has \($0) bytes, over" } ?? "is over"
        return SluiceError(.ingestTooLarge, "An object of class \(type) \(size) the limit of \(Limits.ingestObjectBytes).")
    }
}

extension WriteRejection {
    /// Creates the rejection of an asymmetric object.
    init(_ object: ObjectChange, _ refusal: IngestRights.Rejection) {
        self.init(
            changeset: 0, object: object.object, code: refusal.error.code, reason: refusal.error.message, rule: refusal.rule,
            values: object.values)
    }
}
