package import SluiceCore

/// What can be said of an asymmetric object before the rules see it.
package enum IngestCheck {
    /// Splits a client's objects into those that may enter and those refused, each with its reason (ING-4, ING-9).
    static func split(
        _ objects: [ObjectChange], plan: SessionPlan, schema: AppSchema
    ) -> (accepted: [(change: ObjectChange, json: [UInt8])], refused: [RejectedWrite]) {
        var accepted: [(ObjectChange, [UInt8])] = []
        var refused: [RejectedWrite] = []
        for object in objects {
            let json = ExtendedJSON.json(document(object, schema.schema)).utf8
            let isLarge = json.count > Limits.ingestObjectBytes
            guard let error = refusal(of: object, plan: plan, schema: schema) ?? (isLarge ? tooLarge(object.object.type, json.count) : nil)
            else {
                accepted.append((object, json))
                continue
            }
            refused.append(
                RejectedWrite(changeset: 0, object: object.object, code: error.code, reason: error.message, values: object.values))
        }
        return (accepted, refused)
    }

    private static func refusal(of object: ObjectChange, plan: SessionPlan, schema: AppSchema) -> SluiceError? {
        let name = object.object.type
        guard let type = schema.schema[name], type.kind == .asymmetric else {
            return SluiceError(.ingestUnknownType, "Class \(name) is not an asymmetric class of the server.")
        }
        guard object.kind == .create else {
            return SluiceError(.writeNotAllowed, "An object of asymmetric class \(name) can only be created.")
        }
        let rights = plan[name]
        guard rights.insert, rights.write != TypePlan.denied.write else {
            return SluiceError(.writeNotAllowed, "The rules (role \(rights.role)) do not let this user insert into \(name).")
        }
        return nil
    }

    /// The object with its key, as values by property name.
    static func document(_ object: ObjectChange, _ schema: Schema) -> [String: Value] {
        var values = object.values
        if let type = schema[object.object.type], let key = type.primaryKey { values[type.properties[key].name] = object.object.key }
        return values
    }

    /// Whether texts are objects of the type.
    /// - Returns: of each the object's primary key, or what is wrong with it.
    static func check(_ records: [[UInt8]], type: ObjectType, schema: Schema) -> [Result<Value, SluiceError>] {
        var reader = JSONRowReader(type, in: schema)
        var buffer = RowBuffer()
        return records.map { record in
            buffer.removeAll()
            if record.count <= Limits.ingestObjectBytes, let key = type.primaryKey, let row = reader.read(record[...], into: &buffer),
                let value = buffer.withView(row, { $0.value(key) }), !value.isNull
            {
                return .success(value)
            }
            return check(record, type: type, schema: schema)
        }
    }

    private static func check(_ record: [UInt8], type: ObjectType, schema: Schema) -> Result<Value, SluiceError> {
        Result { () throws(SluiceError) in
            guard record.count <= Limits.ingestObjectBytes else { throw tooLarge(type.name, record.count) }
            let json: JSON
            do throws(JSON.Mistake) { json = try JSON.located(record) } catch {
                throw SluiceError(.ingestMalformed, "column \(error.column): \(error.problem).")
            }
            let values = try ExtendedJSON.values(json, type: type, schema: schema)
            guard let key = type.primaryKey, let value = values[type.properties[key].name], !value.isNull else {
                throw SluiceError(.ingestMalformed, "An object of class \(type.name) has no primary key.")
            }
            return value
        }
    }

    /// - Parameter bytes: nil when nobody has counted them.
    package static func tooLarge(_ type: String, _ bytes: Int? = nil) -> SluiceError {
        let size = bytes.map { "has \($0) bytes, over" } ?? "is over"
        return SluiceError(.ingestTooLarge, "An object of class \(type) \(size) the limit of \(Limits.ingestObjectBytes).")
    }
}
