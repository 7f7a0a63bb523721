import SluiceCore

/// What can be said of an asymmetric object before the rules see it.
enum IngestCheck {
    /// Splits a client's objects into those that may enter and those refused, each with its reason (ING-4, ING-9).
    static func split(
        _ objects: [ObjectChange], plan: SessionPlan, schema: AppSchema
    ) -> (accepted: [ObjectChange], refused: [RejectedWrite]) {
        var accepted: [ObjectChange] = []
        var refused: [RejectedWrite] = []
        for object in objects {
            guard let error = refusal(of: object, plan: plan, schema: schema) else {
                accepted.append(object)
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

    /// Whether JSON fits the type.
    /// - Returns: the object's primary key, or what is wrong with it.
    static func check(_ json: JSON, type: ObjectType) -> Result<Value, SluiceError> {
        Result { () throws(SluiceError) in
            let values = try ExtendedJSON.values(json, type: type)
            guard let key = type.primaryKey, let value = values[type.properties[key].name], !value.isNull else {
                throw SluiceError(.ingestMalformed, "An object of class \(type.name) has no primary key.")
            }
            return value
        }
    }
}
