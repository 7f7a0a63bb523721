import SluiceCore

extension Edit {
    /// `true` if the edit fits the kind of the property. The merge checks deeper steps.
    func fits(_ property: Property) -> Bool {
        switch (property.collection, path.first, action) {
        case (.list, .element, _), (.list, nil, .insert), (.list, nil, .clear(.list)), (.list, nil, .become(.list)): true
        case (.set, nil, .setInsert), (.set, nil, .setErase), (.set, nil, .clear(.set)), (.set, nil, .become(.set)): true
        case (.dictionary, .key, _), (.dictionary, nil, .clear(.dictionary)), (.dictionary, nil, .become(.dictionary)): true
        case (_, nil, .set): true
        case (.none, _, _): fitsSingle(property.type)
        default: false
        }
    }

    private func fitsSingle(_ type: PropertyType) -> Bool {
        switch (type, path.first, action) {
        case (.mixed, _, .setInsert), (.mixed, _, .setErase): !path.isEmpty
        case (.mixed, _, _), (.embedded, .key, _), (.embedded, nil, .become(.object)): true
        case (.int, nil, .add): true
        default: false
        }
    }
}
