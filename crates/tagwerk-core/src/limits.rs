//! Every limit, in one place, each with its reason. A limit that is not here does not exist. (Under construction.)
